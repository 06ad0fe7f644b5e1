"""The page of a search: its cost beside what a report of the best trial would print, and its trials as pictures."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.experiment.metrics import capitalize, is_share
from discreet.report import run_page
from discreet.report.chart_figures import render_chart
from discreet.report.curves import Curve, Mark, Panel, Point
from discreet.report.markup import Html, bullet_list, join, table, tag
from discreet.report.number_format import format_number
from discreet.report.page_sections import section

NAME = "search.html"


@dataclass(frozen=True)
class Trial:
    """A trial that may be shown: its settings and its score."""

    settings: Mapping[str, Any]
    score: float


@dataclass(frozen=True)
class Search:
    """What a page says about a search.

    Attributes:
        name: The experiment's file.
        metric: What trials were compared by.
        is_maximised: Whether a larger value is better.
        verdict: What the whole search reveals, in one sentence.
        mood: "good", "bad" or "none": the colour of the verdict.
        sentences: What else must be known.
        trials: The trials that may be shown, in their order.
        best: The best of them.
    """

    name: str
    metric: str
    is_maximised: bool
    verdict: str
    mood: str
    sentences: Sequence[str]
    trials: Sequence[Trial]
    best: Trial | None


def write(folder: Path, search: Search) -> Path:
    """Write search.html into the folder, and return its path."""
    title = f"Search: {search.name}"
    return run_page.write_atomically(folder / NAME, run_page.html_page(title, join(_body(search, title))))


def _body(search: Search, title: str) -> Iterator[Html]:
    yield tag(
        "header",
        tag("p", "Search", class_="eyebrow"),
        tag("h1", title),
        tag("div", tag("p", search.verdict), class_=f"verdict {search.mood}", role="note", aria_label="Verdict"),
    )
    yield tag("main", *_sections(search))


def _sections(search: Search) -> Iterator[Html]:
    yield section("What the search reveals", bullet_list(search.sentences))
    if search.best is not None:
        rows = [(name, _format(value)) for name, value in search.best.settings.items()]
        yield section("The best settings", table("The settings of the best trial", ["field", "value"], rows))
    if len(search.trials) > 1:
        charts = [render_chart(progress_chart(search), "scores"), *_setting_charts(search)]
        yield section(f"{capitalize(search.metric)} on validation data", tag("div", *charts, class_="charts"))
    if search.trials:
        names = list(search.trials[0].settings)
        cells = (
            [str(number), *(_format(trial.settings[name]) for name in names), _format(trial.score)]
            for number, trial in enumerate(search.trials, start=1)
        )
        yield section("The trials", table("One row for each trial", ["trial", *names, search.metric], cells))


def progress_chart(search: Search) -> Panel:
    """Return the score of each trial, and the best so far."""
    scores = [trial.score for trial in search.trials]
    choose = max if search.is_maximised else min
    best = [choose(scores[: number + 1]) for number in range(len(scores))]
    found = scores.index(choose(scores))
    return Panel(
        f"{capitalize(search.metric)} by trial",
        "trial",
        "",
        (
            *(Curve("trial", (Point(number, score),)) for number, score in enumerate(scores, start=1)),
            Curve("best so far", tuple(Point(number, score) for number, score in enumerate(best, start=1))),
        ),
        marks=(Mark("best", Point(found + 1, scores[found])),),
        whole_x=True,
        percent=is_share(search.metric),
    )


def _setting_charts(search: Search) -> Iterator[Html]:
    """Draw the score by each searched field."""
    for place, name in enumerate(search.trials[0].settings):
        values = [trial.settings[name] for trial in search.trials]
        is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        kinds = list(dict.fromkeys(values))
        at = values if is_number else [kinds.index(value) for value in values]
        panel = Panel(
            f"{capitalize(search.metric)} by {name}",
            name,
            "",
            tuple(Curve("trial", (Point(float(x), trial.score),)) for x, trial in zip(at, search.trials, strict=True)),
            log_x=is_number and 0 < 5 * min(at) <= max(at) < math.inf,
            percent=is_share(search.metric),
            x_names=() if is_number else tuple((float(x), str(value)) for x, value in enumerate(kinds)),
        )
        yield render_chart(panel, f"setting-{place}")


def _format(value: Any) -> str:
    return format_number(value) if isinstance(value, float) else str(value)
