"""A search that counts every trial: any sampler, and a ledger that pays for each trial and each score."""

import secrets
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from discreet.algorithms.algorithm import ServerState
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.configuration.tune_table import Tune
from discreet.experiment.job import Job
from discreet.experiment.loop import training_loop as loop
from discreet.experiment.loop.training_loop import Watch
from discreet.experiment.promise import run_spending
from discreet.experiment.promise.budget_check import check_budgets
from discreet.experiment.promise.promise import promise_event
from discreet.experiment.run_directory import run_keys
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.experiment.tuning import search_price
from discreet.experiment.tuning.optuna_sampler import NextTrial, count_trials
from discreet.experiment.tuning.search_files import ScoredTrial, SearchFiles, SearchIdentity, open_shared
from discreet.experiment.tuning.search_space import Point, list_edges
from discreet.experiment.tuning.trial_jobs import TrialBuilder, check_private, training_job
from discreet.experiment.tuning.trial_score import Scorer, choose_scorer
from discreet.part import to_plain
from discreet.privacy import rdp
from discreet.privacy.events import Event, Repeated
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.ledger.charges import ENOUGH_FOR, compose_charges
from discreet.privacy.release import Release
from discreet.privacy.wording import unit_name


class Observer(Protocol):
    """Is told which trial begins, about each of its rounds, and its score."""

    def begin_trial(self, number: int, settings: Point, job: Job) -> Watch: ...

    def finish_trial(self, trial: ScoredTrial) -> None: ...


@dataclass(frozen=True)
class ComposedPlan:
    """A search that is ready. Nothing was trained yet.

    Attributes:
        tune: The search.
        trials: Number of trials.
        scorer: How trials are compared.
        reference: The trial of the file as it is written, by which the price of all trials is estimated.
        ledger: The ledger that pays. None for public data.
        budget: The budget of the ledger that the promise is about. None for public data.
        tuned_to: The event for which the search's own ledger is tightest, if it is still to be created.
    """

    tune: Tune
    trials: int
    scorer: Scorer
    reference: Job
    ledger: Path | None
    budget: Budget | None
    tuned_to: Event | None = None

    @property
    def whole_epsilon(self) -> float | None:
        return None if self.budget is None else self.budget.epsilon

    @property
    def warnings(self) -> list[str]:
        """Warnings of a promise that says little."""
        return [] if self.budget is None else training_job(self.reference, self.budget.epsilon).terms.promise_warnings()


@dataclass(frozen=True)
class SearchEnd:
    """How a search ended: its scored trials, and why it has fewer than planned. None if it has all."""

    trials: list[ScoredTrial]
    stopped: str | None
    is_refused: bool = False


def plan_search(builder: TrialBuilder, tune: Tune, files: SearchFiles, shared: Path | None) -> ComposedPlan:
    """Build the file's own trial, and refuse a search that can't be read or paid for. Nothing is written.

    Args:
        builder: Builds the trials.
        tune: The search.
        files: The folder of the search, where it may have begun.
        shared: A ledger that other runs share. None if the search has its own.

    Raises:
        BudgetRefused: The ledger can pay for fewer trials.
        InvalidInput: The search has no epsilon and shares no ledger, can't be counted, or names a setting or a value
            that the file can't have.
    """
    for point in list_edges(tune.space):
        builder.read(point)
    job, trials = builder.build({}), count_trials(tune)
    if tune.public_data:
        return ComposedPlan(tune, trials, choose_scorer(job, tune), job, None, None)
    check_private(job)
    path = shared or files.own_ledger
    book = open_shared(path) if shared is not None or path.exists() else None
    scorer = choose_scorer(job, tune, () if book is None else book.budgets)
    if book is not None:
        _check_ledger(book, job)
        budget = _find_budget(book, job)
        _check_affordable(book, job, scorer, trials, files.count_begun())
        return ComposedPlan(tune, trials, scorer, job, path, budget)
    budget, tuned_to = _own_budget(job, tune, trials, scorer)
    with tempfile.TemporaryDirectory() as folder:  # the same ledger, which only says what it could pay for
        draft = Ledger.create(Path(folder) / "ledger.jsonl", [budget], "filter", tuned_to=tuned_to)
        _check_affordable(draft, job, scorer, trials, 0, str(path))
    return ComposedPlan(tune, trials, scorer, job, path, budget, tuned_to)


def create_ledger(plan: ComposedPlan) -> None:
    """Create the search's own ledger, unless it exists or another one pays."""
    if plan.ledger is not None and plan.budget is not None and plan.tuned_to is not None and not plan.ledger.exists():
        Ledger.create(plan.ledger, [plan.budget], "filter", tuned_to=plan.tuned_to)


@dataclass
class ComposedSearch:
    """A search that goes on. Each trial is on disk before it begins, so that the same command continues it.

    Attributes:
        builder: Builds the trials.
        plan: What is searched, and who pays.
        files: The folder of the search.
        identity: The search.
        key_dir: Where the key of a trial is kept until the trial ends.
        observer: Is told how the search goes on.
    """

    builder: TrialBuilder
    plan: ComposedPlan
    files: SearchFiles
    identity: SearchIdentity
    key_dir: Path | None
    observer: Observer

    def run(self) -> SearchEnd:
        """Play the trials that are missing."""
        plan, files = self.plan, self.files
        files.remove_card()
        scored = files.scored_trials()
        self._keep_best(scored)
        sampler = NextTrial(plan.tune, [(trial.settings, trial.score) for trial in scored])
        while (number := len(scored)) < plan.trials:
            settings, next_point = files.begun_settings(number), sampler.ask()
            if settings is None:
                settings = next_point
                files.append({"trial": number, "settings": settings})
            try:
                trial = self._play_trial(number, settings)
            except BudgetRefused as refused:
                return SearchEnd(scored, f"Trial {number + 1} was not made: {refused}", is_refused=True)
            if trial is None:
                where = f"in trial {number + 1} of {plan.trials}"
                return SearchEnd(scored, f"Interrupted {where}; the same command continues the search.")
            scored.append(trial)
            sampler.tell(settings, trial.score)
            self._keep_best(scored)
            self.observer.finish_trial(trial)
        return SearchEnd(scored, None)

    def _keep_best(self, scored: list[ScoredTrial]) -> None:
        if (best := best_trial(self.plan.tune, scored)) is not None:
            self.files.keep_best(best, self.plan.ledger)

    def _play_trial(self, number: int, settings: Point) -> ScoredTrial | None:
        """Train a trial, or go on with it, and score it. None if it was interrupted."""
        path = self.files.trial
        record = RunRecord.open(path) if (path / "run.json").is_file() else None
        is_finished = record is not None and record.is_finished()
        has_key = record is not None and not is_finished and not record.identity.seeded
        key = run_keys.load_key(record.identity.id, self.key_dir) if record is not None and has_key else None
        job = self.builder.build(settings, key)
        trained = training_job(job, self.plan.whole_epsilon)
        watch = self.observer.begin_trial(number, settings, trained)
        if record is not None and is_finished:  # a process died between training and scoring
            checkpoint = record.load_checkpoint(trained.algorithm.init(trained.params))
            assert checkpoint is not None
            return self._score_trial(number, settings, job, record, checkpoint.state)
        if record is None:
            ended = loop.start(trained, path, self.plan.ledger, self.key_dir, watch)
        else:
            ended = loop.resume(trained, record, self.key_dir, watch)
        if ended.stopped:
            ended.record.remove_outcome()  # its card would be for this trial alone
        if ended.is_refused:
            raise BudgetRefused(str(ended.stopped))
        return None if ended.stopped else self._score_trial(number, settings, job, ended.record, ended.state)

    def _score_trial(
        self, number: int, settings: Point, job: Job, record: RunRecord, state: ServerState
    ) -> ScoredTrial:
        """Reserve the score, compute it, and write it down. A score that was not written down is paid for again."""
        plan, scorer = self.plan, self.plan.scorer
        book = None if plan.ledger is None else Ledger.open(plan.ledger)
        releases = [] if book is None else scorer.releases(_training_releases(job))
        ticket = None
        if book is not None and releases:
            ticket = book.reserve(f"search {self.identity.id} score {number} {secrets.token_hex(4)}", releases)
        score = scorer.score(job, state)
        event, epsilon = None, None
        if book is not None:
            promised = search_price.promised_release(job, search_price.trial_releases(job, scorer))
            event, epsilon = to_plain(promised.event), search_price.trial_epsilon(job)
        trial = ScoredTrial(number, settings, score, record.identity.id, epsilon, event)
        line = {"trial": number, "settings": settings, "score": score, "run": trial.run}
        self.files.append(line | {"epsilon": epsilon, "event": event})
        if book is not None and ticket is not None:
            book.commit(ticket, releases)
        return trial


def best_trial(tune: Tune, trials: list[ScoredTrial]) -> ScoredTrial | None:
    """Return the trial with the best score; the first of equal ones."""

    def rank(trial: ScoredTrial) -> tuple[float, int]:
        return (trial.score if tune.is_maximised else -trial.score, -trial.number)

    return max(trials, key=rank, default=None)


def _training_releases(job: Job) -> list[Release]:
    """Return what all rounds of a trial reveal, as a ledger that is shared counts them."""
    return job.algorithm.worst_case().planned_releases(job.rounds, job.population)


def _check_ledger(book: Ledger, job: Job) -> None:
    """Refuse a ledger that can't count a search soundly."""
    if book.mode != "filter":
        raise InvalidInput(
            f"{book.path} counts runs that were planned in advance, and a search chooses later trials by earlier "
            "scores.",
            fix="Use a ledger that counts as a filter: discreet ledger create PATH --mode filter",
        )
    check_budgets(book.budgets, job.privacy, job.algorithm, job.population, str(book.path))


def _check_affordable(book: Ledger, job: Job, scorer: Scorer, trials: int, done: int, name: str | None = None) -> None:
    """Refuse a search whose missing trials the ledger can't pay for, where each costs as much as the file's own.

    Raises:
        BudgetRefused: It says for how many the ledger could pay.
    """
    trained = _training_releases(job)
    each = [*trained, *scorer.releases(trained)]

    def is_affordable(count: int) -> bool:
        try:
            book.check([replace(release, event=Repeated(count=count, event=release.event)) for release in each])
        except BudgetRefused:
            return False
        return True

    missing = trials - done
    affordable = run_spending.most_rounds(missing, is_affordable) if missing > 0 else 0
    if affordable < missing:
        fewer = f"Ask for fewer (--set tune.trials={affordable + done}), p" if affordable else "P"
        raise BudgetRefused(
            f"{name or book.path} can pay for {affordable:,} of {missing:,} trials like the one in the file.",
            fix=f"{fewer}romise less for each (epsilon under [privacy]), or allow more for all (epsilon under [tune]).",
        )


def _own_budget(job: Job, tune: Tune, trials: int, scorer: Scorer) -> tuple[Budget, Event]:
    """Return the budget of the search's own ledger, and the event for which its filter is tightest.

    Raises:
        InvalidInput: The file has no epsilon for it; the message says what the search would cost.
    """
    assert job.privacy is not None
    about = promise_event(job.privacy, job.algorithm, job.rounds, job.population).budget
    trained = _training_releases(job)
    event, relation = compose_charges(about, [*trained, *scorer.releases(trained)])
    needed = rdp.epsilon(Repeated(count=trials, event=event), about.delta, relation)
    return replace(about, epsilon=search_price.require_epsilon(tune.epsilon, needed)), event


def _find_budget(book: Ledger, job: Job) -> Budget:
    """Return the budget that the promise of a trial is about.

    Raises:
        InvalidInput: The ledger has none.
    """
    assert job.privacy is not None
    for budget in book.budgets:
        if budget.unit == job.privacy.unit and budget.view in ENOUGH_FOR[job.privacy.against] and not budget.clients:
            return budget
    raise InvalidInput(
        f"{book.path} has no budget for what this file promises: one {unit_name(job.privacy.unit)} against the "
        f"{job.privacy.against}.",
        fix="Use a ledger for the same unit and view.",
    )
