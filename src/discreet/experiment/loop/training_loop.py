"""The training loop: reserve → sample → gather → step → record. It is the same for every engine."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from discreet.algorithms.algorithm import ServerState
from discreet.algorithms.declarations import trusted_parts
from discreet.code_version import read_code_version
from discreet.engines.engine import RoundRefused
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.job import Job
from discreet.experiment.loop import run_guarantees
from discreet.experiment.loop.diagnostics import json_numbers
from discreet.experiment.loop.interrupt import catch_interrupts
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.loop.round_player import RoundPlayer
from discreet.experiment.loop.round_releases import planned_releases
from discreet.experiment.promise import data_ranges, released_rounds, run_spending
from discreet.experiment.promise.budget_check import check_budgets
from discreet.experiment.promise.released_rounds import ReleasedRound
from discreet.experiment.run_directory import environment, fingerprint, run_keys
from discreet.experiment.run_directory.checkpoint import Checkpoint
from discreet.experiment.run_directory.resume_check import check_unchanged
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.experiment.run_directory.run_record import RunIdentity, RunRecord, check_path_is_free
from discreet.logs import bind_fields, get_log
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Ledger, Ticket

log = get_log(__name__)

Watch: TypeAlias = Callable[[RoundRecord], None]


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
        code=read_code_version().stamp,
    )
    asked: tuple[Ledger, Ticket] | None = None
    if ledger is not None:
        data_ledger = Ledger.open(ledger)
        _check_budgets(job, data_ledger)
        asked = data_ledger, data_ledger.reserve(identity.round_key(0), planned_releases(job, 0, shared=True))

    def own_ledger(folder: Path) -> None:
        if private and ledger is None:
            budgets = run_spending.run_budgets(job.algorithm, job.privacy, job.rounds, job.population)
            own = [part.title for part in trusted_parts(job.algorithm)]
            Ledger.create(folder / "ledger.jsonl", budgets, on_word_of=own)

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
    log.info(
        "run started",
        run=identity.id,
        path=out,
        rounds=job.rounds,
        clients=job.population.clients,
        expected_cohort=job.algorithm.sampling.expected_cohort(job.population),
        promised_epsilon=None if job.privacy is None else job.privacy.largest_epsilon,
        delta=None if job.privacy is None else job.privacy.delta,
    )
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
        done = checkpoint.completed if checkpoint else 0
        log.info("run resumed", run=record.identity.id, path=record.path, round=done, rounds=job.rounds)
        return _finish(job, record, key_dir, _train(job, record, checkpoint, watch, resumed=True))


def _check_budgets(job: Job, shared: Ledger) -> None:
    """Refuse what a shared ledger can't count soundly, before anything is reserved."""
    if own := trusted_parts(job.algorithm):
        raise InvalidInput(
            f"A ledger that other runs share counts what is certified, and this noise is declared by {own[0].kind}.",
            fix="Let the run keep a ledger of its own: leave the ledger out.",
        )
    if shared.on_word_of:
        raise InvalidInput(
            f"{shared.path} counts what {' and '.join(shared.on_word_of)} only declares, so nothing can be certified "
            "from it, and no other run can join it.",
            fix="Create a ledger for the data: discreet ledger create",
        )
    check_budgets(shared.budgets, job.privacy, job.algorithm, job.population, str(shared.path))


@dataclass(frozen=True)
class _LoopEnd:
    done: int
    state: ServerState
    released: list[ReleasedRound]
    stopped: str | None = None
    refused: bool = False
    error: str | None = None


def _train(job: Job, record: RunRecord, checkpoint: Checkpoint | None, watch: Watch, *, resumed: bool) -> _LoopEnd:
    done, saved = (checkpoint.completed, checkpoint.completed) if checkpoint else (0, 0)
    training = RoundPlayer(job, record, checkpoint.block_size if checkpoint else None, done)
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
        is_spent, error = refusal.exit_code == BudgetRefused.exit_code, type(refusal).__name__
        return _LoopEnd(done, state, training.released, why, refused=is_spent, error=error)
    if done < job.rounds:
        why = f"Interrupted after {done} of {job.rounds} rounds; to resume: {record.resume_command}"
        return _LoopEnd(done, state, training.released, why, error="Interrupted")
    return _LoopEnd(done, state, training.released)


def _finish(job: Job, record: RunRecord, key_dir: Path | None, ended: _LoopEnd) -> Outcome:
    """Write the outcome of a finished or stopped run. A finished run no longer needs its key."""
    ledger = record.open_ledger()
    metrics = json_numbers(job.evaluate(ended.state.params))
    code_stamps = list(dict.fromkeys([*record.code_stamps(), read_code_version().stamp]))
    cards = run_guarantees.certify_run(
        job,
        ended.done,
        ledger,
        shared=record.shares_ledger,
        released=ended.released,
        metrics=metrics,
        code_stamps=code_stamps,
    )
    guarantee = run_guarantees.guarantee_data(job, ended.done, ended.stopped, cards, ledger, code_stamps)
    guarantee |= {"metrics": metrics}
    if job.task.person is not None and job.holds_data:
        guarantee |= {"rows_left_out": job.task.rows_left_out}
    record.write_outcome(
        job.model.module_with_params(ended.state.params).state_dict(), guarantee, run_guarantees.card_text(cards)
    )
    if ended.done == job.rounds:
        run_keys.delete_key(record.identity.id, key_dir)
    _log_end(record, job.rounds, ended, cards)
    return Outcome(record, ended.done, ended.state, ended.stopped, ended.refused, tuple(cards), metrics)


def _log_end(record: RunRecord, rounds: int, ended: _LoopEnd, cards: Sequence[Guarantee]) -> None:
    promised = cards[0] if cards else None
    with bind_fields(
        run=record.identity.id,
        round=ended.done,
        rounds=rounds,
        epsilon=promised.epsilon if promised else None,
        declared=bool(promised and promised.on_word_of) or None,
    ):
        if ended.stopped is None:
            log.info("run finished", path=record.path)
        else:
            log.warning("run stopped", error=ended.error, path=record.path)
