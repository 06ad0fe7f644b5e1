"""The training loop: reserve → sample → gather → step → record. It is the same for every engine."""

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from discreet.algorithms.declarations import trusted_parts
from discreet.code_version import read_code_version
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.job import Job
from discreet.experiment.loop import run_guarantees
from discreet.experiment.loop.callbacks import Callbacks
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.loop.round_releases import planned_releases
from discreet.experiment.loop.run_loop import RunLoop
from discreet.experiment.promise import data_ranges, run_spending
from discreet.experiment.promise.budget_check import check_budgets
from discreet.experiment.run_directory import environment, fingerprint, run_files, run_keys
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.experiment.run_directory.run_record import RunIdentity, RunRecord, check_path_is_free
from discreet.logs import get_log
from discreet.part import to_plain
from discreet.privacy.ledger import Ledger, Ticket
from discreet.round_clock import NO_CLOCK, Clock

log = get_log(__name__)

Watch: TypeAlias = Callable[[RoundRecord], None]


def start(
    job: Job,
    out: Path,
    ledger: Path | None,
    key_dir: Path | None,
    watch: Watch,
    callbacks: Callbacks | None = None,
    clock: Clock = NO_CLOCK,
) -> Outcome:
    """Create the run directory and train. See `start_loop`; `watch` is called with the record of every round."""
    return _play_all(start_loop(job, out, ledger, key_dir, callbacks, clock=clock), watch)


def resume(
    job: Job,
    record: RunRecord,
    key_dir: Path | None,
    watch: Watch,
    callbacks: Callbacks | None = None,
    clock: Clock = NO_CLOCK,
) -> Outcome:
    """Continue after the last checkpoint. See `resume_loop`; `watch` is called with the record of every round."""
    return _play_all(resume_loop(job, record, key_dir, callbacks, clock=clock), watch)


def _play_all(loop: RunLoop, watch: Watch) -> Outcome:
    with loop:
        with loop.catch_interrupts():
            while (line := loop.play_round()) is not None:
                watch(line)
        return loop.finish()


def start_loop(
    job: Job,
    out: Path,
    ledger: Path | None,
    key_dir: Path | None,
    callbacks: Callbacks | None = None,
    *,
    is_stop_free: bool = False,
    clock: Clock = NO_CLOCK,
) -> RunLoop:
    """Create the run directory, and return the loop over its rounds.

    Args:
        job: What to train.
        out: Where to create the run directory.
        ledger: A ledger that other runs share. None gives the run a ledger of its own.
        key_dir: Where the run's key is kept until the run is finished.
        callbacks: What to call at each round. If one of them may stop the run, the caller may.
        is_stop_free: Whether the caller may stop for any reason, such as what the rounds show.
        clock: Measures where the time of each round goes, for profile.json.

    Raises:
        InvalidInput: The run can't start as it is; nothing was written.
        BudgetRefused: The ledger can't pay for all rounds, or not for the first one; nothing was written.
    """
    callbacks = Callbacks() if callbacks is None else callbacks
    check_path_is_free(out)
    data_ranges.check_accepted(job.task.ranges_from_data, accepted=job.accept_data_ranges)
    private = bool(job.algorithm.releases(job.population, 0))
    # what can't be certified afterwards is refused before training
    run_guarantees.certify_run(job.terms, job.rounds, None, shared=False)
    job.settings.engine.check_reachable(job.device)
    for tracker in job.settings.track:
        tracker.check(is_new=True)
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
        model_files=fingerprint.own_files(job.folder, job.resolved_text, fingerprint.MODEL_TABLES),
        examples=job.population.examples,
        max_multiplicity=job.population.max_multiplicity,
    )
    asked: tuple[Ledger, Ticket] | None = None
    if ledger is not None:
        data_ledger = Ledger.open(ledger)
        _check_budgets(job, data_ledger, is_stop_free=is_stop_free or callbacks.may_stop)
        _check_plan_is_unused(data_ledger)
        if not job.as_far_as_it_goes:
            check_whole_plan(job, data_ledger)
        asked = data_ledger, data_ledger.reserve(identity.round_key(0), planned_releases(job, 0, shared=True))

    def own_ledger(folder: Path) -> None:
        if private and ledger is None:
            budgets = run_spending.run_budgets(job.algorithm, job.privacy, job.rounds, job.population)
            own = [part.title for part in trusted_parts(job.algorithm)]
            Ledger.create(folder / "ledger.jsonl", budgets, on_word_of=own)

    texts = {"resolved.toml": job.resolved_text, "environment.json": environment.describe_environment(job.device)}
    if job.task.columns is not None:
        texts[run_files.TABLE] = json.dumps(to_plain(job.task.columns), indent=2, ensure_ascii=False) + "\n"
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
    return RunLoop(job, record, key_dir, callbacks, resumed=False, clock=clock)


def resume_loop(
    job: Job,
    record: RunRecord,
    key_dir: Path | None,
    callbacks: Callbacks | None = None,
    *,
    is_stop_free: bool = False,
    clock: Clock = NO_CLOCK,
) -> RunLoop:
    """Return the loop over the rounds after the last checkpoint, bit for bit as if the run had never stopped.

    Raises:
        InvalidInput: Data, code or experiment differ from those the run was started with; nothing was written.
    """
    callbacks = Callbacks() if callbacks is None else callbacks
    data_ranges.check_accepted(job.task.ranges_from_data, accepted=job.accept_data_ranges)
    if record.identity.ledger is not None:
        shared = Ledger.open(record.identity.ledger)
        _check_budgets(job, shared, is_stop_free=is_stop_free or callbacks.may_stop)
    return RunLoop(job, record, key_dir, callbacks, resumed=True, clock=clock)


def check_whole_plan(job: Job, shared: Ledger) -> None:
    """Refuse a run that a shared ledger can pay for only in part: what an unfinished run spends is lost.

    Raises:
        BudgetRefused: The ledger can pay for some of the rounds. If it can't pay for one, its own error says so.
    """
    affordable = affordable_rounds(job, shared)
    if 0 < affordable < job.rounds:
        raise BudgetRefused(
            f"{shared.path} can pay for {affordable:,} of {job.rounds:,} rounds, and what they spend would be lost on "
            "a run that can't finish.",
            fix="Promise a smaller epsilon, or plan fewer rounds; or train as far as it goes: --as-far-as-it-goes "
            "(as_far_as_it_goes=True in Python).",
        )


def affordable_rounds(job: Job, shared: Ledger) -> int:
    """Return how many of the planned rounds a shared ledger can pay for now."""

    def is_affordable(rounds: int) -> bool:
        try:
            shared.check(job.algorithm.worst_case().planned_releases(rounds, job.population))
        except BudgetRefused:
            return False
        return True

    return run_spending.most_rounds(job.rounds, is_affordable)


def _check_plan_is_unused(shared: Ledger) -> None:
    """Refuse a second run in a ledger for one planned run: it was planned after seeing the first one."""
    counted = shared.summary()["releases"]
    if shared.mode == "plan" and counted["committed"] + counted["reserved"]:
        raise InvalidInput(
            f"{shared.path} counts one planned run, and another run has used it already.",
            fix="Resume that run, or use a ledger for many runs: discreet ledger create --mode filter",
        )


def _check_budgets(job: Job, shared: Ledger, *, is_stop_free: bool) -> None:
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
    if is_stop_free and shared.mode == "plan":
        raise InvalidInput(
            f"{shared.path} counts runs that were planned in advance, and this one may stop because of what it shows.",
            fix="Use a ledger that counts as a filter, or discreet.train, whose callbacks have may_stop = False.",
        )
    check_budgets(shared.budgets, job.privacy, job.algorithm, job.population, str(shared.path))
