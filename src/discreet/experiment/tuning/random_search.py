"""A search that releases only the best of a secret random number of independent trials."""

import random
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.errors import BudgetRefused, DiscreetError, Unsupported
from discreet.experiment.configuration.tune_table import Tune
from discreet.experiment.job import Job
from discreet.experiment.loop import run_guarantees
from discreet.experiment.loop import training_loop as loop
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.loop.sum_odds import TrialNumber, search_odds
from discreet.experiment.promise.budget_check import check_budgets
from discreet.experiment.run_directory.run_record import RunRecord, explain_os_errors
from discreet.experiment.tuning import search_price
from discreet.experiment.tuning.hidden_trials import hidden_folder
from discreet.experiment.tuning.search_files import LEDGER, open_shared
from discreet.experiment.tuning.search_space import Point, draw_candidates
from discreet.experiment.tuning.trial_jobs import TrialBuilder, check_private, training_job
from discreet.experiment.tuning.trial_score import Scorer, choose_scorer
from discreet.logs import silence_events
from discreet.paths import OnProgress
from discreet.privacy.card_lines import Line
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Release
from discreet.privacy.trial_count import draw_count
from discreet.privacy.wording import round_up
from discreet.words import fill

IN_PROCESS = ("embedded", "reference", "secure")  # engines of which nobody else sees how often they are asked
INTERRUPTED = "The search was interrupted, so nothing of it leaves. What it reserved stays spent."


@dataclass(frozen=True)
class RandomPlan:
    """A search that is ready: all its possible trials were built and priced, and no data was trained on.

    Attributes:
        tune: The search.
        candidates: The points that trials are drawn from.
        scorer: How trials are compared.
        whole: What the whole search reveals.
        epsilon: The ε of the whole search, at the promise's δ.
        delta: The δ of the promise.
        naive: The ε that a report of the best trial alone would print: the largest of any candidate.
        budget: What the search's own ledger allows.
        warnings: Warnings of a promise that says little.
    """

    tune: Tune
    candidates: list[Point]
    scorer: Scorer
    whole: list[Release]
    epsilon: float
    delta: float
    naive: float
    budget: Budget
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Winner:
    """The best trial of a search: its run directory, settings, score, metrics on test data, and the search's cards."""

    record: RunRecord
    settings: Point
    score: float
    metrics: dict[str, Any]
    guarantees: tuple[Guarantee, ...] = ()


def plan_search(builder: TrialBuilder, watch: OnProgress, shared: Path | None = None) -> RandomPlan:
    """Build and price every candidate, so that errors show and the whole cost is known before data is used.

    Args:
        builder: Builds the trials.
        watch: Is told how the planning goes on.
        shared: A ledger that other runs share. None if the search gets its own.

    Raises:
        Unsupported: The promise is against somebody who takes part in every trial.
        InvalidInput: A candidate can't be built, or the search has no epsilon of its own.
        BudgetRefused: The shared ledger can't pay for the search.
    """
    tune = builder.read_tune()
    book = None if shared is None else open_shared(shared)
    candidates = draw_candidates(tune.space, tune.candidates, random.SystemRandom())
    jobs: list[Job] = []
    for number, point in enumerate(candidates):
        watch("planning", number, len(candidates))
        job = builder.build(point)
        check_private(job)
        _check_view(job)
        jobs.append(job)
    first = jobs[0]
    assert first.privacy is not None
    scorer = choose_scorer(first, tune, () if book is None else book.budgets)
    naive = max(map(search_price.trial_epsilon, jobs))
    whole = search_price.best_of_releases(tune.trial_count, [search_price.trial_releases(job, scorer) for job in jobs])
    promised = search_price.promised_release(first, whole)
    delta = first.privacy.delta
    epsilon = search_price.epsilon_of(promised, delta)
    asked = search_price.require_epsilon(tune.epsilon, epsilon)
    if not epsilon <= asked:
        raise BudgetRefused(
            f"The whole search would cost epsilon = {round_up(epsilon)} at delta = {delta:g}, over the {asked:g} under "
            f"[tune]; one trial alone costs {round_up(naive)}.",
            fix="Promise less for one trial (epsilon under [privacy]), expect fewer trials, or allow more in [tune].",
        )
    if book is not None:
        check_budgets(book.budgets, first.privacy, first.algorithm, first.population, str(shared))
        book.check(whole)
    budget = search_price.whole_budget(first, promised, asked)
    warnings = training_job(first, epsilon).terms.promise_warnings()  # of what the card will say
    return RandomPlan(tune, candidates, scorer, whole, epsilon, delta, naive, budget, tuple(warnings))


def open_ledger(plan: RandomPlan, folder: Path, shared: Path | None) -> Path:
    """Create the folder of the search, and its own ledger unless it shares one. Return the ledger's path."""
    with explain_os_errors("folder of the search", folder):
        folder.mkdir(parents=True, exist_ok=True)
    if shared is None:
        Ledger.create(folder / LEDGER, [plan.budget])
    return shared or folder / LEDGER


def run_search(
    builder: TrialBuilder,
    plan: RandomPlan,
    out: Path,
    ledger: Path,
    *,
    draw: Callable[[], int] | None = None,
) -> Winner | None:
    """Reserve the whole search, play its trials, and write the best one to `out`/best. None if no trial was drawn.

    Nothing of another trial is kept, shown or logged, and neither is their number.

    Args:
        builder: Builds the trials.
        plan: The search.
        out: The folder of the search, which exists.
        ledger: The ledger that pays for it.
        draw: Draws the number of trials. None draws it from the operating system's entropy.

    Raises:
        BudgetRefused: The ledger can't pay for the search; nothing was trained.
        DiscreetError: The search was interrupted.
    """
    book = Ledger.open(ledger)
    # Committed before it begins: when it ends must not show how many trials there were.
    book.commit(book.reserve(f"search {secrets.token_hex(8)}", plan.whole), plan.whole)
    trials = (draw or (lambda: draw_count(plan.tune.trial_count)))()
    best: Winner | None = None
    with hidden_folder() as hidden, silence_events():
        for _ in range(trials):
            settings = secrets.choice(plan.candidates)
            # an error may name the folder, so its name must not count the trials
            ended, score = _play_trial(builder, plan, settings, hidden / secrets.token_hex(8))
            if best is None or _is_better(plan.tune, score, best.score):
                if best is not None:
                    shutil.rmtree(best.record.path.parent)
                best = Winner(ended.record, settings, score, ended.metrics)
            else:
                shutil.rmtree(ended.record.path.parent)
        return None if best is None else _publish(builder, plan, best, out / "best", book)


def _play_trial(builder: TrialBuilder, plan: RandomPlan, settings: Point, folder: Path) -> tuple[Outcome, float]:
    """Train and score one trial, with fresh randomness."""
    job = builder.build(settings)
    folder.mkdir()
    trained = training_job(job, plan.tune.epsilon)
    ended = loop.start(trained, folder / "run", None, folder / "keys", lambda line: None)
    if ended.stopped is not None:
        raise DiscreetError(INTERRUPTED, fix="Run the search again in another folder; it pays again.")
    return ended, plan.scorer.score(job, ended.state)


def _is_better(tune: Tune, score: float, best: float) -> bool:
    return score > best if tune.is_maximised else score < best


def _publish(builder: TrialBuilder, plan: RandomPlan, best: Winner, path: Path, book: Ledger) -> Winner:
    """Write the best trial with the card of the whole search."""
    job = training_job(builder.build(best.settings), plan.tune.epsilon)
    record = best.record.publish(path, book.path.resolve(), leave_out=("epsilon", "seconds"))
    drawn = Line(fill("assumes.drawn_settings", candidates=len(plan.candidates)), "program")
    is_shared = book.path.resolve().parent != path.resolve().parent
    # of all candidates, not of those that were played: which these were stays secret
    others = [training_job(builder.build(point), plan.tune.epsilon).terms for point in plan.candidates]
    odds = search_odds(others, TrialNumber(plan.tune.trial_count.mean, is_secret=True))
    assumed = [
        line for each in others for line in run_guarantees.trial_assumptions(each, plan.whole, odds, shared=is_shared)
    ]
    terms = search_price.search_terms(job, plan.scorer, plan.whole, [drawn, *assumed], naive=plan.naive)
    stamps = best.record.code_stamps()
    cards = run_guarantees.certify_run(
        job.terms,
        job.rounds,
        book,
        shared=is_shared,
        metrics=best.metrics,
        code_stamps=stamps,
        search=terms,
        odds=odds,
    )
    data = run_guarantees.guarantee_data(job, job.rounds, None, cards, book, stamps)
    record.write_card(data | {"metrics": best.metrics}, run_guarantees.card_text(cards))
    return replace(best, record=record, guarantees=tuple(cards))


def _check_view(job: Job) -> None:
    """Refuse a promise against somebody who takes part in every trial."""
    assert job.privacy is not None
    if job.privacy.against != "public":
        raise Unsupported(
            f"A random search releases only its best trial, which hides nothing from the {job.privacy.against}: it "
            "takes part in every trial.",
            fix='Promise against = "public", or count every trial: mode = "compose" under [tune].',
        )
    if job.settings.engine.kind not in IN_PROCESS:
        raise Unsupported(
            f"Workers of the engine {job.settings.engine.kind!r} would see how many trials there are.",
            fix='Use engine = "embedded".',
        )
