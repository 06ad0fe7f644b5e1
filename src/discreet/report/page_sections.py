"""The sections of a run's page: one function for each; it returns None if the run has nothing to show there."""

import math
from collections.abc import Iterator, MutableMapping
from typing import Any, TypeAlias

import tomlkit
from tomlkit.exceptions import TOMLKitError

from discreet.experiment.metrics import list_metrics
from discreet.experiment.run_directory.run_data import RunData
from discreet.privacy.guarantee import split_by_largest_epsilon
from discreet.privacy.wording import compact, join_words, round_up
from discreet.report import charts
from discreet.report.attack_charts import TITLES
from discreet.report.attack_contents import attack_contents
from discreet.report.audit_sections import audit_contents, shown_audits
from discreet.report.chart_figures import render_chart
from discreet.report.curves import Level, Panel
from discreet.report.guarantee_card import guarantee_card, other_clients_table
from discreet.report.markup import Child, Html, bullet_list, definition_list, details, tag
from discreet.report.number_format import format_number
from discreet.report.profile_section import TITLE, profile_contents
from discreet.words import fill

Tile: TypeAlias = tuple[str, str, str]

NOT_COVERED = "not covered by the guarantee"
PUBLIC_ENVIRONMENT = ("discreet", "commit", "dirty", "python", "packages", "system", "machine", "device", "started")


def sections(run: RunData, *, public: bool) -> Iterator[Html | None]:
    """Yield every section of the page in its order. The public version has none that the guarantee doesn't cover."""
    yield guarantees(run, public=public)
    yield from audits(run, public=public)
    yield epsilon_by_round(run)
    if not public:
        yield quality(run)
        yield norms(run)
        yield cohorts(run)
        yield rows_left_out(run)
        yield from attacks(run)
        yield time_by_phase(run)
    yield experiment(run, public=public)
    yield environment(run, public=public)
    yield ledger(run)


def title(run: RunData) -> str:
    """Return the title of the page: the task and the recipe."""
    task, recipe = run.value("task", "name") or run.value("task", "kind"), run.recipe
    if not isinstance(task, str):
        return run.name
    return f"Training on {task} with {recipe}" if recipe else f"Training on {task}"


def covered_tiles(run: RunData) -> Iterator[Tile]:
    """Yield name, value and note of each main number that the guarantee covers, or that is public."""
    card, promise = run.main_guarantee, run.promise
    if card is not None:
        promised = "no budget was set"
        if promise and promise.is_about(card):
            promised = f"of {compact(promise.epsilon)} promised"
        kind = "ε certified" if card.is_certified else "ε declared"
        if run.is_seeded:
            kind, promised = "ε without a seed", "with its seed, this run protects nobody"
        yield kind, "∞" if math.isinf(card.epsilon) else round_up(card.epsilon), promised
        yield "δ", compact(card.delta), "probability that ε does not cover"
    if run.rounds or run.planned_rounds:
        planned = f"of {run.planned_rounds:,} planned" if run.planned_rounds else "done"
        yield "rounds", f"{len(run.rounds):,}", planned


def uncovered_tiles(run: RunData) -> Iterator[Tile]:
    """Yield name, value and note of each main number that the guarantee does not cover."""
    for name, series in list(run.metrics().items())[:1]:
        last, level = max(series), charts.constant_level(run, name)
        comparison = f"{level.name}: {format_number(level.y)}; " if level else ""
        yield name, charts.format_metric(name, series[last]), f"round {last:,}; {comparison}{NOT_COVERED}"
    seconds = [value for value in run.series("seconds").values() if math.isfinite(value)]
    if seconds:
        yield "training time", _format_duration(sum(seconds)), f"{compact(sum(seconds) / len(seconds), 2)} s per round"


def unreadable_files(run: RunData) -> Html | None:
    """List the files of the run directory that can't be read, and why."""
    problems = [*run.problems, *([run.ledger_error] if run.ledger_error else [])]
    return section("What could not be read", bullet_list(problems)) if problems else None


def guarantees(run: RunData, *, public: bool) -> Html | None:
    """Show every guarantee as a card; in public, without the numbers that the card itself says it does not cover."""
    if not run.guarantees:
        return None
    cards, others = split_by_largest_epsilon(run.guarantees)
    name = "The guarantee" if len(run.guarantees) == 1 else f"The {len(run.guarantees)} guarantees"
    if run.is_seeded:
        name += " of the same run without a seed"
    if not cards[0].is_certified:
        name = "What is declared, and not certified"
    other_clients = other_clients_table(others) if others else None
    return section(name, *(guarantee_card(card, public=public) for card in cards), other_clients)


def epsilon_by_round(run: RunData) -> Html | None:
    """Chart the epsilon spent by the end of each round."""
    spent = run.series("epsilon")
    if not spent:
        return None
    levels = (Level("promised", run.promise.epsilon),) if run.promise else ()
    bound = run.promise or run.main_guarantee
    delta = f" at δ = {compact(bound.delta)}" if bound else ""
    chart = charts.round_chart(f"ε spent{delta}", {"ε spent": spent}, levels=levels, from_zero=True)
    why = "A bound on what could be learned by the end of each round. It follows from the plan, not from the data."
    return section("Privacy spent by round", tag("p", why), _figures("spent", [chart]))


def quality(run: RunData) -> Html | None:
    """Chart the metrics of the model by round."""
    pictures = list(charts.quality_charts(run))
    if not pictures:
        return None
    others = {"validation": run.validation_metrics, "training": run.training_metrics}
    data = join_words(["test", *(use for use, metrics in others.items() if metrics)])
    why = f"Measured on {data} data without noise: these numbers reveal something about that data."
    return _uncovered_section(f"{list_metrics(list(run.metrics())[:2])} by round", why, "quality", pictures)


def norms(run: RunData) -> Html | None:
    """Chart the norms of the clients' updates, how many updates or examples were clipped, and signal to noise."""
    sizes, clipped = list(charts.norm_charts(run)), [*charts.clipping_charts(run), *charts.signal_charts(run)]
    if not sizes and not clipped:
        return None
    if not clipped:
        why = "The norms of the clients' updates. This algorithm does not clip whole updates."
        return _uncovered_section("Update norms by round", why, "norms", sizes)
    why = (
        "The norms of the clients' updates before any clip. If few are clipped, the clip norm could be smaller, and so "
        "could the noise. If nearly all are clipped, the model learns less than the clients send."
    )
    if run.series("clipped_examples"):
        why = (
            "The norms of the clients' updates, and how many of a sample of training examples have a gradient above "
            "the clip norm. If few have, the clip norm could be smaller, and so could the noise. If nearly all have, "
            "all examples count alike, however wrong the model is on them."
        )
    if run.series("signal_to_noise"):
        why += " Signal to noise is the norm of the sum of the clipped updates, divided by the norm of its noise."
    return _uncovered_section("Update norms and fraction clipped by round", why, "norms", [*sizes, *clipped])


def cohorts(run: RunData) -> Html | None:
    """Chart the number of clients that took part in each round, and describe their traffic."""
    sizes = run.series("clients", "cohort", "contributors")
    if not sizes:
        return None
    sent = _describe_traffic(run)
    if len(set(sizes.values())) == 1:
        sentence = f"{format_number(next(iter(sizes.values())))} clients took part in every round.{sent}"
        return section("Participants", tag("p", sentence), covered=False)
    chart = charts.round_chart("Clients that took part", {"clients": sizes}, from_zero=True)
    why = "The number of clients that took part. The sums were divided by the expected number, which is public."
    return _uncovered_section("Participants by round", why + sent, "cohort", [chart])


def rows_left_out(run: RunData) -> Html | None:
    """Count the rows that were left out because their person has more rows than the promise allows."""
    rows = run.rows_left_out
    if rows is None:
        return None
    rows_were = "row was" if rows == 1 else "rows were"
    sentence = f"{rows:,} {rows_were} left out, so that no person has more rows than the promise allows."
    return section("Rows left out", tag("p", sentence), covered=False)


def audits(run: RunData, *, public: bool) -> Iterator[Html]:
    """Show what audits measured beside what is certified; audits among the clients' data only to the owner."""
    shown = shown_audits(run, public=public)
    for is_public in (True, False):
        if records := [record for record in shown if record.is_public is is_public]:
            yield section(fill("audit.title"), *audit_contents(records), covered=is_public)


def attacks(run: RunData) -> Iterator[Html]:
    """Show each attack that the owner has made on the run."""
    for found in run.attacks:
        yield section(TITLES[found["attack"]], *attack_contents(found), covered=False)


def time_by_phase(run: RunData) -> Html | None:
    """Show where the time of a round went, if it was measured. Only the owner's page may: times tell who took part."""
    return None if run.profile is None else section(TITLE, *profile_contents(run.profile), covered=False)


def experiment(run: RunData, *, public: bool) -> Html | None:
    """Show the experiment with all defaults filled in, and as it was written.

    In public, only the former: its fields are declared public, and comments in the file are not. Ranges that were
    taken from the data are left out.
    """
    resolved, source = run.resolved_text, "" if public else run.source_text
    if public and run.has_data_ranges:
        resolved = _remove_ranges(resolved)
    if not resolved and not source:
        return None
    texts = (("with all defaults filled in", resolved, True), ("as it was written", source, not resolved))
    blocks = (
        details(f"The experiment {form}", code_block(text, "Experiment file"), in_print=in_print)
        for form, text, in_print in texts
        if text
    )
    return section("The experiment", *blocks)


def environment(run: RunData, *, public: bool) -> Html | None:
    """Show versions and machine of the run; in public, only the entries that are public."""
    entries = [
        (name.replace("_", " "), _join_values(value))
        for name, value in run.environment.items()
        if value is not None and (name in PUBLIC_ENVIRONMENT or not public)
    ]
    return section("The environment", definition_list(entries)) if entries else None


def ledger(run: RunData) -> Html | None:
    """Show length and head of the ledger, and whether it is the one that the card names."""
    mark, chain = run.ledger_mark, run.chain
    entries: list[tuple[str, Child]] = []
    if mark:
        entries += [("Entries on the card", f"{mark.length:,}"), ("Head on the card", tag("code", mark.head))]
    if run.ledger_fault in ("changed", "missing"):
        entries += [("Check", fill(f"verdict.ledger_{run.ledger_fault}"))]
    if chain:
        entries += [("Entries in the ledger", f"{chain.length:,}"), ("Head of the ledger", tag("code", chain.head))]
        entries += [("Check", chain.compare_with(mark))]
    if not entries:
        return None
    why = (
        "Every round was written to the ledger before it touched the data. Keep the head and the number of entries: "
        "they show whether entries are missing at the end."
    )
    shown = tag("p", why) if run.ledger_fault is None else None  # what is not shown is not claimed
    return section("The ledger", shown, definition_list(entries))


def _remove_ranges(resolved: str) -> str:
    """Replace the ranges in the experiment by a note; the name of a file that holds them stays."""
    try:
        document = tomlkit.parse(resolved)
    except TOMLKitError:
        return "Left out: it can't be parsed, and may contain ranges that were taken from the data."
    task = document.get("task")
    if isinstance(task, MutableMapping) and isinstance(task.get("ranges"), MutableMapping):
        task["ranges"] = "left out: taken from the data"
    return tomlkit.dumps(document)


def _describe_traffic(run: RunData) -> str:
    up, down = (list(run.series(f"bits.{way}").values()) for way in ("up", "down"))
    if not up or not down:
        return ""
    return f" In a round, each received {format_number(down[-1])} bits and sent {format_number(up[-1])} bits."


def _uncovered_section(name: str, why: str, key: str, pictures: list[Panel]) -> Html:
    return section(name, tag("p", why), _figures(key, pictures), covered=False)


def _figures(key: str, pictures: list[Panel]) -> Html:
    figures = (
        render_chart(chart, f"{key}-{index}", source="rounds.jsonl", note=charts.describe_gaps(chart))
        for index, chart in enumerate(pictures)
    )
    return tag("div", *figures, class_="charts")


def section(name: str, *children: Child, covered: bool = True) -> Html:
    """Return one section of a page; if the guarantee does not cover its numbers, the heading says so."""
    if covered:
        return tag("section", tag("h2", name), *children, class_="part")
    badge = tag("span", NOT_COVERED, class_="badge")
    return tag("section", tag("h2", name, " ", badge), *children, class_="part uncovered")


def _join_values(value: Any) -> str:
    """Join nested values to one line, such as "torch 2.13, numpy 2.4": a line for each would fill the page."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_join_values(entry)}" for name, entry in value.items())
    return ", ".join(map(_join_values, value)) if isinstance(value, list) else str(value)


def code_block(text: str, label: str, *, is_wrapped: bool = False) -> Html:
    """Return text in its own lines, which scroll unless they are wrapped; `label` names it for screen readers."""
    wrapped = "wrap" if is_wrapped else None
    return tag("pre", tag("code", text), tabindex="0", role="region", aria_label=label, class_=wrapped)


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{compact(seconds, 2)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
