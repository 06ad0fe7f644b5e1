"""The training loop: reserve → sample → gather → step → record. It is the same for every engine."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from discreet.algorithms.algorithm import ServerState
from discreet.algorithms.declarations import trusted_parts
from discreet.engines.engine import CohortSum, RoundRefused
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.job import Job
from discreet.experiment.loop import diagnostics, run_guarantees
from discreet.experiment.loop.diagnostics import json_number, json_numbers
from discreet.experiment.loop.interrupt import catch_interrupts
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.loop.round_releases import draw_cohort, paying_clients, planned_releases, releases_of_round
from discreet.experiment.promise import data_ranges, released_rounds, run_spending
from discreet.experiment.promise.budget_check import check_budgets
from discreet.experiment.promise.released_rounds import ReleasedRound
from discreet.experiment.run_directory import environment, fingerprint, run_keys
from discreet.experiment.run_directory.resume_check import check_unchanged
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.experiment.run_directory.run_record import Checkpoint, RunIdentity, RunRecord, check_path_is_free
from discreet.privacy.ledger import Ledger, Ticket
from discreet.randomness.purposes import Purpose
from discreet.secure_sums.secagg.session_errors import RoundOver

Watch: TypeAlias = Callable[[RoundRecord], None]
DIED = "The server stopped in this round, and may have seen its sum: it counts, and is not repeated."


def start(job: Job, out: Path, ledger: Path | None, key_dir: Path | None, watch: Watch) -> Outcome:
    """Create the run directory and train.

    Args:
        job: What to train.
        out: Where to create the run directory.
        ledger: A ledger that other runs share. None gives the run a ledger of its own.
        key_dir: Where the run's key is kept until the run is finished.
        watch: Called with the record of every completed round.

    Raises:
        InvalidInput: The run can't start as it is; nothing was written.
        BudgetRefused: The ledger can't pay for the first round; nothing was written.
    """
    check_path_is_free(out)
    data_ranges.check_accepted(job.task.ranges_from_data, accepted=job.accept_data_ranges)
    private = bool(job.algorithm.releases(job.population, 0))
    # what can't be certified afterwards is refused before training
    run_guarantees.certify_run(job, job.rounds, None, shared=False)
    job.settings.engine.check_reachable(job.device)
    if ledger is not None:
        if not ledger.exists():
            raise InvalidInput(f"There is no ledger {ledger}.", fix=f"Create it first: discreet ledger create {ledger}")
        ledger = ledger.resolve()
    identity = RunIdentity(
        id=secrets.token_hex(8),
        ledger=None if ledger is None else str(ledger),
        folder=None if job.folder is None else str(job.folder),
        seeded=job.key.is_seeded,
        private=private or ledger is not None,
        again=None if job.deployment is None else job.deployment.resume_command,
        data_ranges=job.task.ranges_from_data,
        fingerprint=fingerprint.take_fingerprint(job),
    )
    asked: tuple[Ledger, Ticket] | None = None
    if ledger is not None:
        data_ledger = Ledger.open(ledger)
        _check_budgets(job, data_ledger)
        asked = data_ledger, data_ledger.reserve(identity.round_key(0), planned_releases(job, 0, shared=True))

    def own_ledger(folder: Path) -> None:
        if private and ledger is None:
            budgets = run_spending.run_budgets(job.algorithm, job.privacy, job.rounds, job.population)
            Ledger.create(folder / "ledger.jsonl", budgets)

    texts = {"resolved.toml": job.resolved_text, "environment.json": environment.describe_environment(job.device)}
    if job.source_text:
        texts["experiment.toml"] = job.source_text
    try:
        run_keys.store_key(job.key, identity.id, key_dir)
        record = RunRecord.create(out, identity, texts, own_ledger)
    except BaseException:
        run_keys.delete_key(identity.id, key_dir)
        if asked:
            asked[0].void(asked[1])  # nothing was trained yet
        raise
    with record.lock():
        return _finish(job, record, key_dir, _train(job, record, None, watch, resumed=False))


def resume(job: Job, record: RunRecord, key_dir: Path | None, watch: Watch) -> Outcome:
    """Continue after the last checkpoint, bit for bit as if the run had never stopped.

    Raises:
        InvalidInput: Data, code or experiment differ from those the run was started with; nothing was written.
    """
    data_ranges.check_accepted(job.task.ranges_from_data, accepted=job.accept_data_ranges)
    if record.identity.ledger is not None:
        _check_budgets(job, Ledger.open(record.identity.ledger))
    with record.lock():
        check_unchanged(job, record)
        checkpoint = record.load_checkpoint(job.algorithm.init(job.params))
        record.rewind(checkpoint)
        return _finish(job, record, key_dir, _train(job, record, checkpoint, watch, resumed=True))


def _check_budgets(job: Job, shared: Ledger) -> None:
    """Refuse what a shared ledger can't count soundly, before anything is reserved."""
    if own := trusted_parts(job.algorithm):
        raise InvalidInput(
            f"A ledger that other runs share counts what is certified, and this noise is declared by {own[0].kind}.",
            fix="Let the run keep a ledger of its own: leave the ledger out.",
        )
    check_budgets(shared.budgets, job.privacy, job.algorithm, job.population, str(shared.path))


@dataclass(frozen=True)
class _LoopEnd:
    done: int
    state: ServerState
    released: list[ReleasedRound]
    stopped: str | None = None
    refused: bool = False


def _train(job: Job, record: RunRecord, checkpoint: Checkpoint | None, watch: Watch, *, resumed: bool) -> _LoopEnd:
    done, saved = (checkpoint.completed, checkpoint.completed) if checkpoint else (0, 0)
    training = _Training(job, record, checkpoint.block_size if checkpoint else None, done)
    training.in_flight = resumed and training.is_open(done)
    state = checkpoint.state if checkpoint else job.algorithm.init(job.params)
    line: RoundRecord = checkpoint.line if checkpoint else {}
    refusal: BudgetRefused | RoundRefused | None = None
    if done:  # the last process may have died before its commit
        training.settle(training.reserve(done - 1) if released_rounds.parse_round(line) else None, line)
    if resumed:
        record.remove_outcome()
    with catch_interrupts(terminate=not training.engine.is_remote) as stop:
        while done < job.rounds and not stop.is_requested and refusal is None:
            try:
                ticket = training.reserve(done)
            except BudgetRefused as refused:
                refusal = refused
                break
            try:
                state, line = training.round(done, state)
            except RoundRefused as refused:
                training.void(ticket)  # an open ticket means that the round may have been seen
                if not done:  # no model exists yet
                    raise
                refusal = refused
                break
            except InvalidInput:
                if not training.engine.is_remote:
                    training.void(ticket)
                raise
            if released_rounds.parse_round(line) is None:
                training.void(ticket)
            done += 1
            if done == job.rounds or done % job.settings.checkpoint_every == 0:
                training.save(done, state, line)
                saved = done
            training.settle(ticket, line)
            record.append_round(line)
            watch(line)
            refusal = training.refusal
        if saved < done:
            training.save(done, state, line)
    if refusal is not None and done < job.rounds:
        why = f"Stopped after {done} of {job.rounds} rounds. {refusal}"
        return _LoopEnd(done, state, training.released, why, refused=refusal.exit_code == BudgetRefused.exit_code)
    if done < job.rounds:
        why = f"Interrupted after {done} of {job.rounds} rounds; to resume: {record.resume_command}"
        return _LoopEnd(done, state, training.released, why)
    return _LoopEnd(done, state, training.released)


class _Training:
    """The engine and the ledger of one run, the rounds released so far, and the steps of a round that use them."""

    def __init__(self, job: Job, record: RunRecord, block_size: int | None, done: int) -> None:
        self.job, self.record = job, record
        self.released = released_rounds.parse_rounds(record.read_rounds(), done)
        self.engine = job.build_engine(block_size)
        self.ledger = None if record.ledger_path is None else Ledger.open(record.ledger_path)
        self.experiment = record.experiment_digest()
        self.refusal: RoundRefused | None = None  # why the run ends after a round that still counts
        self.in_flight = False  # whether a process that died had begun the next round with real clients

    def reserve(self, round: int) -> Ticket | None:
        if self.ledger is None:
            return None
        releases = planned_releases(self.job, round, shared=self.record.identity.ledger is not None)
        return self.ledger.reserve(self.record.identity.round_key(round), releases) if releases else None

    def is_open(self, round: int) -> bool:
        """Whether the round was begun with real clients, and its end was never recorded."""
        if self.ledger is None or not self.engine.is_remote:
            return False
        return self.ledger.is_open(self.record.identity.round_key(round))

    def round(self, round: int, state: ServerState) -> tuple[ServerState, RoundRecord]:
        """Play one round. Return the new state and the round's record; a lost round leaves the state as it was.

        What a process had seen when it died counts. A secure sum is not repeated: it would come with fresh noise, for
        which nothing was planned. In clear, clients send the same bytes again.
        """
        job, began = self.job, time.perf_counter()
        seen, self.in_flight = self.in_flight, False
        if seen and job.algorithm.aggregation.is_secure:
            return state, self._complete_record(_lost_round(round, DIED, revealed=True), state, None, began)
        broadcast = job.algorithm.broadcast(state, round, self.engine.simulation.public_update)
        try:
            gathered = self.engine.gather(broadcast, draw_cohort(job, round))
        except (RoundOver, RoundRefused) as lost:
            revealed = lost.revealed or seen
            if isinstance(lost, RoundRefused):  # which ends the run too
                if not revealed:
                    raise
                self.refusal = lost
            return state, self._complete_record(_lost_round(round, lost.problem, revealed=revealed), state, None, began)
        noise = self.engine.simulation.rows(broadcast, [-1]).for_purpose(Purpose.SERVER)
        left = job.spent_clients(round)
        joined = len(gathered.contributors)
        state = job.algorithm.server_step(state, broadcast, gathered.total, joined, job.population, noise, left)
        return state, self._complete_record({"round": round + 1, "clients": joined}, state, gathered, began)

    def _complete_record(
        self, line: RoundRecord, state: ServerState, gathered: CohortSum | None, began: float
    ) -> RoundRecord:
        """Complete the record of a round for rounds.jsonl. A guarantee covers only its `epsilon`."""
        job, done = self.job, line["round"]
        if (happened := released_rounds.parse_round(line)) is not None:
            self.released.append(happened)
        if job.settings.is_evaluated(done):  # ε too: it is only computed when it is shown
            line |= {
                "epsilon": json_number(job.spent_epsilon(done, self.released)),
                "evaluation": json_numbers(job.evaluate(state.params)),
            }
            if job.settings.evaluate_training:
                line["training"] = json_numbers(job.evaluate_training(state.params))
        if gathered is not None:
            line |= diagnostics.round_diagnostics(job, gathered)
        return line | {"seconds": round(time.perf_counter() - began, 6)}

    def save(self, done: int, state: ServerState, line: RoundRecord) -> None:
        run = self.record.identity.id
        self.record.save_checkpoint(Checkpoint(done, run, self.engine.block_size, self.experiment, line, state))

    def settle(self, ticket: Ticket | None, line: RoundRecord) -> None:
        """Commit what really happened: the drawn clients pay, with the noise of those who contributed.

        If a round was lost after shares were revealed, its contributors are unknown, and it costs what was reserved.
        """
        happened = released_rounds.parse_round(line)
        if self.ledger is None or ticket is None or happened is None:
            return
        shared, payers = (
            self.record.identity.ledger is not None,
            paying_clients(self.job, draw_cohort(self.job, happened.round)),
        )
        releases = releases_of_round(
            self.job, happened.round, payers, noise_shares=happened.noise_shares, shared=shared
        )
        self.ledger.commit(ticket, releases)

    def void(self, ticket: Ticket | None) -> None:
        if self.ledger is not None and ticket is not None:
            self.ledger.void(ticket)


def _lost_round(round: int, why: str, *, revealed: bool) -> RoundRecord:
    return {"round": round + 1, "clients": 0, "lost": why, "revealed": revealed}


def _finish(job: Job, record: RunRecord, key_dir: Path | None, ended: _LoopEnd) -> Outcome:
    """Write the outcome of a finished or stopped run. A finished run no longer needs its key."""
    ledger = None if record.ledger_path is None else Ledger.open(record.ledger_path)
    shared = record.identity.ledger is not None
    cards = run_guarantees.certify_run(job, ended.done, ledger, shared=shared, released=ended.released)
    metrics = json_numbers(job.evaluate(ended.state.params))
    found = run_guarantees.guarantee_data(job, ended.done, ended.stopped, cards, ledger) | {"metrics": metrics}
    if job.task.person is not None and job.holds_data:
        found |= {"rows_left_out": job.task.rows_left_out}
    record.write_outcome(
        job.model.module_with_params(ended.state.params).state_dict(), found, run_guarantees.card_text(cards)
    )
    if ended.done == job.rounds:
        run_keys.delete_key(record.identity.id, key_dir)
    return Outcome(record, ended.done, ended.state, ended.stopped, ended.refused, tuple(cards), metrics)
