"""What `discreet tune` prints and draws when a search has ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from discreet.cli.text_table import text_table
from discreet.privacy.wording import compact, round_up

if TYPE_CHECKING:
    from discreet.experiment.configuration.tune_table import Tune
    from discreet.experiment.tuning.composed_search import ComposedPlan, SearchEnd
    from discreet.experiment.tuning.random_search import RandomPlan, Winner
    from discreet.experiment.tuning.trial_jobs import TrialBuilder
    from discreet.privacy.guarantee import Guarantee

OWNER = "The owner of the data declares all of it to be public, so nothing is counted."


def random_lines(plan: "RandomPlan", winner: "Winner | None", page: Path) -> Iterator[RenderableType]:
    """Yield what a random search prints: its card, the best settings and the cost."""
    from discreet.experiment.loop.run_guarantees import card_text

    if winner is None:
        yield "The secret number of trials was zero, so there is no model. What the search reserved stays spent."
        return
    yield card_text(list(winner.guarantees))
    yield ""
    yield from _describe_best(winner.settings, winner.score, plan.tune, plan.scorer.deviation, plan.scorer.examples)
    yield _describe_cost(plan.epsilon, plan.delta, plan.naive)
    yield f"The model is in {winner.record.path}, and the page of the search is {page}"


def composed_lines(
    plan: "ComposedPlan", end: "SearchEnd", cards: "list[Guarantee]", folder: Path, page: Path
) -> Iterator[RenderableType]:
    """Yield what a search that counts every trial prints: its card, its trials, the best settings and the cost."""
    from discreet.experiment.loop.run_guarantees import card_text
    from discreet.experiment.tuning.composed_search import best_trial

    if cards:
        yield card_text(cards)
        yield ""
    if end.trials:
        names = list(end.trials[0].settings)
        table = text_table("trial", *names, plan.tune.metric, right={"trial", plan.tune.metric}, gap=2)
        for trial in end.trials:
            values = (format_setting(trial.settings[name]) for name in names)
            table.add_row(str(trial.number + 1), *values, compact(trial.score, 4))
        yield table
        yield ""
    best = best_trial(plan.tune, end.trials)
    if best is not None:
        yield from _describe_best(best.settings, best.score, plan.tune, plan.scorer.deviation, plan.scorer.examples)
    if plan.budget is None:
        yield OWNER
        yield f"The page of the search is {page}"
    else:
        if (naive := largest_trial_epsilon(end)) is not None:
            yield _describe_cost(plan.budget.epsilon, plan.budget.delta, naive)
        model = "" if best is None else f"The model is in {folder / 'best'}, and the page of the search is {page}"
        yield model or f"The page of the search is {page}"
    if end.stopped is not None:
        yield ""
        yield end.stopped


def _describe_best(
    settings: dict[str, Any], score: float, tune: "Tune", deviation: float | None, examples: int
) -> Iterator[str]:
    from discreet.experiment.tuning.search_space import format_settings

    yield f"Best settings: {'  '.join(format_settings(settings))}"
    noise = "" if deviation is None else f", with noise of deviation {compact(deviation / examples, 2)}"
    yield f"On {examples:,} validation examples: {tune.metric} {compact(score, 4)}{noise}"


def _describe_cost(epsilon: float, delta: float, naive: float) -> str:
    return (
        f"The whole search: epsilon = {round_up(epsilon)} at delta = {compact(delta)}. A report of the best trial "
        f"alone would say {round_up(naive)}, and hide that it was chosen."
    )


def write_random_page(builder: "TrialBuilder", plan: "RandomPlan", winner: "Winner | None", folder: Path) -> Path:
    """Write the page of a random search, which shows its best trial only."""
    from discreet.report import search_page

    best = None if winner is None else search_page.Trial(winner.settings, winner.score)
    sentences = [] if winner is None else _page_sentences(winner.guarantees[0])
    page = search_page.Search(
        builder.file.name,
        plan.tune.metric,
        plan.tune.is_maximised,
        _describe_cost(plan.epsilon, plan.delta, plan.naive),
        "good",
        sentences,
        [],
        best,
    )
    return search_page.write(folder, page)


def write_composed_page(
    builder: "TrialBuilder", plan: "ComposedPlan", end: "SearchEnd", cards: "list[Guarantee]", folder: Path
) -> Path:
    """Write the page of a search that counts every trial."""
    from discreet.experiment.tuning.composed_search import best_trial
    from discreet.report import search_page

    best, naive = best_trial(plan.tune, end.trials), largest_trial_epsilon(end)
    if plan.budget is None:
        verdict, mood, sentences = OWNER, "none", ["Neither the trials nor their scores have a guarantee."]
    elif naive is None:
        verdict, mood, sentences = "No trial has a score yet.", "none", []
    else:
        verdict, mood = _describe_cost(plan.budget.epsilon, plan.budget.delta, naive), "good"
        sentences = [sentence for card in cards for sentence in _page_sentences(card)]
    page = search_page.Search(
        builder.file.name,
        plan.tune.metric,
        plan.tune.is_maximised,
        verdict,
        mood,
        [*sentences, *([end.stopped] if end.stopped else [])],
        [search_page.Trial(trial.settings, trial.score) for trial in end.trials],
        None if best is None else search_page.Trial(best.settings, best.score),
    )
    return search_page.write(folder, page)


def _page_sentences(card: "Guarantee") -> list[str]:
    """Return what the card says about the search itself, and where the rest is."""
    about = ("trial", "score")
    said = [sentence for sentence in card.assumptions if any(word in sentence for word in about)]
    return [card.sentence(), *said, "The whole card is in best/guarantee.txt, and the report in best/report.html."]


def format_setting(value: Any) -> str:
    """Format the value of a setting in few digits."""
    return compact(value, 4) if isinstance(value, float) else str(value)


def largest_trial_epsilon(end: "SearchEnd") -> float | None:
    """Return the largest ε of a trial alone. None if no trial has one."""
    return max((trial.epsilon for trial in end.trials if trial.epsilon is not None), default=None)
