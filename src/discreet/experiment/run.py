"""The loop: reserve → sample → gather → step → record. It is the same for every engine."""

import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from discreet.algorithms import ServerState
from discreet.engines.engine import CohortSum
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment import card, environment, keys, promise
from discreet.experiment.interrupt import graceful
from discreet.experiment.job import Job
from discreet.experiment.record import Checkpoint, Identity, Record, refuse_taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Ledger, Ticket
from discreet.privacy.release import Release

Line: TypeAlias = dict[str, Any]  # what rounds.jsonl says of one round
Watch: TypeAlias = Callable[[Line], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `stopped` says why it ended early, and `refused` whether the budget was the reason."""

    record: Record
    done: int
    state: ServerState
    stopped: str | None
    refused: bool
    guarantees: tuple[Guarantee, ...]
    metrics: dict[str, Any]


def start(job: Job, out: Path, ledger: Path | None, key_dir: Path | None, watch: Watch) -> Outcome:
    """Make the run directory and train. A budget that can't pay for the first round refuses before it is made."""
    refuse_taken(out)
    private = bool(job.algorithm.releases(job.population, 0))
    run = secrets.token_hex(8)
    asked: tuple[Ledger, Ticket] | None = None
    if ledger is not None:
        if not ledger.exists():
            raise InvalidInput(f"There is no ledger {ledger}.", fix=f"Make it first: discreet ledger create {ledger}")
        data_ledger = Ledger.open(ledger := ledger.resolve())
        asked = data_ledger, data_ledger.reserve(_name(run, 0), planned(job, 0, shared=True))

    def own_ledger(folder: Path) -> None:
        if private and ledger is None:
            budgets = promise.budgets(job.algorithm, job.privacy, job.rounds, job.population)
            Ledger.create(folder / "ledger.jsonl", budgets)

    identity = Identity(
        id=run,
        ledger=None if ledger is None else str(ledger),
        folder=None if job.folder is None else str(job.folder),
        seeded=job.key.seeded,
        private=private or ledger is not None,
    )
    texts = {"resolved.toml": job.resolved, "environment.json": environment.described(job.device)}
    if job.text:
        texts["experiment.toml"] = job.text
    try:
        keys.store(job.key, run, key_dir)
        record = Record.create(out, identity, texts, own_ledger)
    except BaseException:
        keys.forget(run, key_dir)
        if asked:
            asked[0].void(asked[1])  # nothing was trained yet
        raise
    with record.held():
        return _ended(job, record, key_dir, _train(job, record, None, watch))


def resume(job: Job, record: Record, key_dir: Path | None, watch: Watch) -> Outcome:
    """Go on after the last checkpoint, bit for bit as if the run had never stopped."""
    with record.held():
        checkpoint = record.checkpoint(job.algorithm.init(job.params))
        record.rewind(checkpoint)
        return _ended(job, record, key_dir, _train(job, record, checkpoint, watch))


@dataclass(frozen=True)
class _Ended:
    done: int
    state: ServerState
    stopped: str | None = None
    refused: bool = False


def _train(job: Job, record: Record, checkpoint: Checkpoint | None, watch: Watch) -> _Ended:
    training = _Training(job, record, checkpoint.block_size if checkpoint else None)
    done, saved = (checkpoint.done, checkpoint.done) if checkpoint else (0, 0)
    state = checkpoint.state if checkpoint else job.algorithm.init(job.params)
    line: Line = checkpoint.line if checkpoint else {}
    refusal: BudgetRefused | None = None
    if done:  # the commit that the last process may not have lived to make
        training.commit(training.reserve(done - 1), done - 1)
    with graceful() as stop:
        while done < job.rounds and not stop.asked:
            try:
                ticket = training.reserve(done)
            except BudgetRefused as refused:
                refusal = refused
                break
            state, line = training.round(done, state)
            done += 1
            if done == job.rounds or done % job.settings.checkpoint_every == 0:
                training.save(done, state, line)
                saved = done
            training.commit(ticket, done - 1)
            record.append(line)
            watch(line)
        if saved < done:
            training.save(done, state, line)
    if refusal is not None:
        return _Ended(done, state, f"Stopped after {done} of {job.rounds} rounds. {refusal}", refused=True)
    if done < job.rounds:
        again = f"discreet run --resume {record.path}"
        return _Ended(done, state, f"Interrupted after {done} of {job.rounds} rounds; to go on: {again}")
    return _Ended(done, state)


class _Training:
    """One run's engine and ledger, and the steps of a round that touch them."""

    def __init__(self, job: Job, record: Record, block_size: int | None) -> None:
        self.job, self.record = job, record
        self.engine, self.simulation, self.block_size = job.engine(block_size)
        self.ledger = None if record.ledger is None else Ledger.open(record.ledger)
        self.experiment = record.experiment()

    def reserve(self, round: int) -> Ticket | None:
        if self.ledger is None:
            return None
        shared = self.record.identity.ledger is not None
        return self.ledger.reserve(_name(self.record.identity.id, round), planned(self.job, round, shared=shared))

    def round(self, round: int, state: ServerState) -> tuple[ServerState, Line]:
        job, began = self.job, time.perf_counter()
        broadcast = job.algorithm.broadcast(state, round)
        gathered = self.engine.gather(broadcast, _cohort(job, round))
        noise = self.simulation.rows(broadcast, [-1]).at("server")
        state = job.algorithm.server_step(state, broadcast, gathered.total, job.population, noise)
        return state, _line(job, round + 1, state, gathered, began)

    def save(self, done: int, state: ServerState, line: Line) -> None:
        run = self.record.identity.id
        self.record.save(Checkpoint(done, run, self.block_size, self.experiment, line, state))

    def commit(self, ticket: Ticket | None, round: int) -> None:
        """What really happened: in a simulation, whoever is drawn contributes."""
        if self.ledger is None or ticket is None:
            return
        shared = self.record.identity.ledger is not None
        joined = None if shared else _named(self.job, _cohort(self.job, round))
        self.ledger.commit(ticket, self.job.algorithm.releases(self.job.population, round, joined))


def planned(job: Job, round: int, *, shared: bool) -> list[Release]:
    """What the round will release, as far as it is known before anybody is drawn.

    In a ledger that runs share, everyone pays alike: who is client 3 is this run's own business, and another run may
    have dealt the same examples out differently.
    """
    known = None if shared else job.algorithm.sampling.known_cohort(job.population, round)
    return job.algorithm.releases(job.population, round, None if known is None else _named(job, known))


def _named(job: Job, cohort: Sequence[int]) -> tuple[int, ...] | None:
    """Those who pay, by number; all of them need no naming."""
    return None if len(cohort) == job.population.clients else tuple(cohort)


def _cohort(job: Job, round: int) -> list[int]:
    return sorted(job.algorithm.sampling.sample(job.population, round, job.key.generator("sampling", round)))


def _line(job: Job, done: int, state: ServerState, gathered: CohortSum, began: float) -> Line:
    """What rounds.jsonl says of a round. Only `epsilon` is covered by a guarantee."""
    norms = gathered.norms.double()
    line: Line = {"round": done, "clients": len(gathered.contributors)}
    if job.settings.evaluates(done, job.rounds):  # ε too: it is asked for when it is shown
        line |= {"epsilon": _sayable(job.spent(done)), "evaluation": _finite(job.evaluate(state.params))}
    if norms.numel():
        found = {"mean": norms.mean(), "median": norms.median(), "max": norms.max()}
        line["norms"] = _finite({name: float(value) for name, value in found.items()})
        kept = gathered.kept.double().nan_to_num(0.0)
        mean = kept.mean()
        line["kept"] = _finite({"mean": float(mean), "deviation": float((kept - mean).abs().mean())})
    return line | {"clipped": gathered.clipped, "seconds": round(time.perf_counter() - began, 6)}


def _ended(job: Job, record: Record, key_dir: Path | None, ended: _Ended) -> Outcome:
    """Write what a finished or stopped run leaves behind; a finished one needs its key no longer."""
    ledger = None if record.ledger is None else Ledger.open(record.ledger)
    cards = card.guarantees(job, ended.done, ledger, shared=record.identity.ledger is not None)
    metrics = _finite(job.evaluate(ended.state.params))
    found = card.data(job, ended.done, ended.stopped, cards, ledger) | {"metrics": metrics}
    record.finish(job.model.module_with(ended.state.params).state_dict(), found, card.words(cards))
    if ended.done == job.rounds:
        keys.forget(record.identity.id, key_dir)
    return Outcome(record, ended.done, ended.state, ended.stopped, ended.refused, tuple(cards), metrics)


def _name(run: str, round: int) -> str:
    return f"run {run} round {round}"


def _sayable(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def _finite(values: dict[str, float]) -> dict[str, Any]:
    """JSON has no infinity and no NaN: they are said in words."""
    return {name: _sayable(value) for name, value in values.items()}
