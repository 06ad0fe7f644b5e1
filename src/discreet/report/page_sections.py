"""What stands on a run's page, one function a section; a section about which the run says nothing is None."""

import math
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TypeAlias

import tomlkit
from tomlkit.exceptions import TOMLKitError

from discreet.privacy.guarantee import split_by_largest_epsilon
from discreet.privacy.wording import compact, round_up
from discreet.report import charts
from discreet.report.guarantee_card import guarantee_card, other_clients_table
from discreet.report.markup import Child, Html, bullet_list, definition_list, details, tag
from discreet.report.plotly_figures import (
    Chart,
    Level,
    Line,
    format_number,
    format_percent,
    numbers_table,
    render_chart,
)
from discreet.report.run_data import RunData

Section: TypeAlias = Callable[[RunData], Html | None]
Tile: TypeAlias = tuple[str, str, str]

NOT_COVERED = "not covered by the guarantee"
PUBLIC_ENVIRONMENT = ("discreet", "python", "packages", "system", "machine", "device", "started")


def title(story: RunData) -> str:
    """What was learned, and how."""
    task, recipe = story.value("task", "name") or story.value("task", "kind"), story.recipe
    if not isinstance(task, str):
        return story.name
    return f"Training on {task} with {recipe}" if recipe else f"Training on {task}"


def covered_tiles(story: RunData) -> Iterator[Tile]:
    card, promise = story.main_guarantee, story.promise
    if card is not None:
        asked = f"of {compact(promise.epsilon)} promised" if promise and promise.is_about(card) else "no budget was set"
        yield "ε certified", "∞" if math.isinf(card.epsilon) else round_up(card.epsilon), asked
        yield "δ", compact(card.delta), "probability that ε leaves aside"
    if story.rounds or story.planned_rounds:
        planned = f"of {story.planned_rounds:,} planned" if story.planned_rounds else "done"
        yield "rounds", f"{len(story.rounds):,}", planned


def uncovered_tiles(story: RunData) -> Iterator[Tile]:
    for name, series in list(story.metrics().items())[:1]:
        last, level = max(series), charts.constant_level(story, name)
        beside = f"{level.name}: {format_number(level.value)}; " if level else ""
        yield name, _metric_format(name)(series[last]), f"round {last:,}; {beside}{NOT_COVERED}"
    seconds = [value for value in story.series("seconds").values() if math.isfinite(value)]
    if seconds:
        yield "training time", _format_duration(sum(seconds)), f"{compact(sum(seconds) / len(seconds), 2)} s a round"


def unreadable_files(story: RunData) -> Html | None:
    if not story.problems:
        return None
    return _section("What could not be read", bullet_list(story.problems))


def guarantees(story: RunData) -> Html | None:
    return _guarantee_cards(story, public=False)


def public_guarantees(story: RunData) -> Html | None:
    """Without the numbers that a card names only to say that it doesn't cover them."""
    return _guarantee_cards(story, public=True)


def spending(story: RunData) -> Html | None:
    spent = story.series("epsilon")
    if not spent:
        return None
    level = Level("promised", story.promise.epsilon) if story.promise else None
    counted = story.promise or story.main_guarantee
    at = f" at δ = {compact(counted.delta)}" if counted else ""
    chart = Chart("spent", f"ε spent{at}", (Line("ε spent", spent),), level=level, from_zero=True)
    why = "What an onlooker could have learned by the end of each round. It follows from the plan, not from the data."
    return _section("Privacy spent by round", tag("p", why), render_chart(chart), numbers_table("ε by round", chart))


def quality(story: RunData) -> Html | None:
    pictures = list(charts.quality_charts(story))
    if not pictures:
        return None
    data = "test data and on training data" if story.training_metrics else "test data"
    why = f"Measured on {data}, in clear: whoever sees these numbers learns something about that data."
    named = " and ".join(list(story.metrics())[:2])
    return _uncovered_section(f"{charts.capitalize(named)} by round", why, pictures)


def norms(story: RunData) -> Html | None:
    sizes, clipped = list(charts.norm_charts(story)), [*charts.clipping_charts(story), *charts.signal_charts(story)]
    if not sizes and not clipped:
        return None
    if not clipped:
        return _uncovered_section(
            "Update norms by round", "How large the clients' updates were. This algorithm clips no whole update.", sizes
        )
    why = (
        "How large the clients' updates were before any clip. Few clipped: the clip could be smaller, and with it the "
        "noise. Nearly all clipped: the model learns less than the clients send. Signal to noise is the norm of the "
        "sum of the clipped updates over that of the noise in it."
    )
    return _uncovered_section("Update norms and fraction clipped by round", why, [*sizes, *clipped])


def cohorts(story: RunData) -> Html | None:
    sizes = story.series("clients", "cohort", "contributors")
    if not sizes:
        return None
    sent = _describe_traffic(story)
    if len(set(sizes.values())) == 1:
        said = f"{format_number(next(iter(sizes.values())))} clients took part in every round.{sent}"
        return _section("Who took part", tag("p", said), covered=False)
    chart = Chart("cohort", "Clients that took part", (Line("clients", sizes),), from_zero=True)
    why = "How many clients took part in each round. The sums were divided by the expected number, which is public."
    return _uncovered_section("Who took part, by round", why + sent, [chart])


def rows_left_out(story: RunData) -> Html | None:
    """Rows of persons who have more than may be used."""
    rows = story.rows_left_out
    if rows is None:
        return None
    said = f"{rows:,} row{' was' if rows == 1 else 's were'} left out, so that no person has more rows than promised."
    return _section("Rows left out", tag("p", said), covered=False)


def experiment(story: RunData) -> Html | None:
    if not story.resolved_text and not story.source_text:
        return None
    resolved = details("The experiment, every part resolved", _code(story.resolved_text), in_print=True)
    written = details("The experiment as it was written", _code(story.source_text), in_print=not story.resolved_text)
    return _section("The experiment", resolved if story.resolved_text else None, written if story.source_text else None)


def public_experiment(story: RunData) -> Html | None:
    """Only what was resolved: its fields are public by declaration, and comments are not.

    Ranges that were taken from the data are left out.
    """
    if not story.resolved_text:
        return None
    text = _remove_ranges(story.resolved_text) if story.has_data_ranges else story.resolved_text
    return _section("The experiment", details("The experiment, every part resolved", _code(text), in_print=True))


def environment(story: RunData) -> Html | None:
    return _environment_section(story.environment)


def public_environment(story: RunData) -> Html | None:
    return _environment_section(
        {name: story.environment[name] for name in PUBLIC_ENVIRONMENT if name in story.environment}
    )


def ledger(story: RunData) -> Html | None:
    mark, chain = story.ledger_mark, story.chain
    entries: list[tuple[str, Child]] = []
    if mark:
        entries += [("Entries, by the card", f"{mark.length:,}"), ("Head, by the card", tag("code", mark.head))]
    if chain:
        entries += [("Entries in the run's ledger", f"{chain.length:,}"), ("Its head", tag("code", chain.head))]
        entries += [("Checked", chain.against(mark))]
    if not entries:
        return None
    why = "Written before data was touched. Keep its head and length: they show whether its end was cut off."
    return _section("The ledger", tag("p", why), definition_list(entries))


def _remove_ranges(resolved: str) -> str:
    """The experiment with no bound or list of values in it; a file that holds them may be named."""
    try:
        whole = tomlkit.parse(resolved)
    except TOMLKitError:
        return "It can't be read, and may hold ranges that were taken from the data."
    task = whole.get("task")
    if isinstance(task, MutableMapping) and isinstance(task.get("ranges"), MutableMapping):
        task["ranges"] = "left out: taken from the data"
    return tomlkit.dumps(whole)


def _guarantee_cards(story: RunData, *, public: bool) -> Html | None:
    if not story.guarantees:
        return None
    cards, others = split_by_largest_epsilon(story.guarantees)
    name = "The guarantee" if len(story.guarantees) == 1 else f"The {len(story.guarantees)} guarantees"
    own = other_clients_table(others) if others else None
    return _section(name, *(guarantee_card(card, public=public) for card in cards), own)


def _describe_traffic(story: RunData) -> str:
    up, down = (list(story.series(f"bits.{way}").values()) for way in ("up", "down"))
    return (
        f" Each got {format_number(down[-1])} bits in a round, and sent {format_number(up[-1])}." if up and down else ""
    )


def _uncovered_section(name: str, why: str, pictures: list[Chart]) -> Html:
    shown = tag("div", *map(render_chart, pictures), class_="charts")
    return _section(name, tag("p", why), shown, numbers_table(name, *pictures), covered=False)


def _section(name: str, *children: Child, covered: bool = True) -> Html:
    """One section; if its numbers tell about the data, its heading says so."""
    if covered:
        return tag("section", tag("h2", name), *children, class_="part")
    badge = tag("span", NOT_COVERED, class_="badge")
    return tag("section", tag("h2", name, " ", badge), *children, class_="part uncovered")


def _environment_section(found: dict[str, Any]) -> Html | None:
    return _section("The environment", definition_list(_entries(found))) if found else None


def _entries(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        if value is not None:
            yield name.replace("_", " "), _join_values(value)


def _join_values(value: Any) -> str:
    """Versions as "torch 2.13, numpy 2.4": a line for each would be most of the page."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_join_values(each)}" for name, each in value.items())
    return ", ".join(map(_join_values, value)) if isinstance(value, list) else str(value)


def _code(text: str) -> Html:
    return tag("pre", tag("code", text), tabindex="0", role="region", aria_label="Experiment file")


def _metric_format(metric: str) -> Callable[[float], str]:
    return format_percent if metric == "accuracy" else format_number


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{compact(seconds, 2)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
