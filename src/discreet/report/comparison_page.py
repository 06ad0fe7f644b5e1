"""The page of a comparison: one table and its charts in one HTML file; and the table in Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.experiment.metrics import capitalize, is_share
from discreet.report import run_page
from discreet.report.chart_figures import render_chart
from discreet.report.comparison_rows import TUNING, Row, columns, describe_code, describe_seeds, notes, short_names
from discreet.report.curves import Curve, Panel, Point
from discreet.report.markup import Html, join, table, tag
from discreet.report.page_sections import code_block, section

NAME = "compare.html"
TABLE = "table.md"
MAX_NAMES = 4  # more experiments than this are counted in the title, not named


def write(folder: Path, rows: Sequence[Row], command: str) -> tuple[Path, Path]:
    """Write compare.html and table.md into the folder, and return their paths.

    Args:
        rows: One for each cell of the comparison.
        command: The command that repeats the comparison, which both files quote.
    """
    page = run_page.write_atomically(folder / NAME, render_page(rows, command))
    table = run_page.write_atomically(folder / TABLE, render_markdown(rows, command))
    return page, table


def render_page(rows: Sequence[Row], command: str) -> str:
    """Return the whole page as HTML that loads nothing from elsewhere."""
    title = _title(rows)
    return run_page.html_page(title, join(_body(rows, title, command)))


def render_markdown(rows: Sequence[Row], command: str) -> str:
    """Return the table, its notes and the command as Markdown."""
    shown = columns(rows)
    lines = [[column.heading for column in shown], ["---" if column.is_text else "---:" for column in shown]]
    lines += [list(cells) for cells in zip(*(column.cells for column in shown), strict=True)]
    text = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return f"{text}\n\n{' '.join(notes(rows))}\n\n`{command}`\n"


def _title(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(row.name for row in rows))
    if len(names) > 1:
        return f"{_join_names(names) if len(names) <= MAX_NAMES else f'{len(names)} experiments'} compared"
    return f"{names[0]} by {_join_names(list(rows[0].swept))}" if rows[0].swept else names[0]


def _body(rows: Sequence[Row], title: str, command: str) -> Iterator[Html]:
    yield tag(
        "header",
        tag("p", "Comparison", class_="eyebrow"),
        tag("h1", title),
        tag(
            "div",
            tag("p", describe_seeds(rows)),
            tag("p", TUNING),
            class_="verdict none",
            role="note",
            aria_label="Verdict",
        ),
    )
    shown = columns(rows)
    cells = zip(*(map(_keep_on_one_line, column.cells) for column in shown), strict=True)
    metrics = list(dict.fromkeys(row.metric for row in rows if row.metric))
    charts = [
        section(
            f"{capitalize(metric)}, measured on test data",
            render_metric(rows, metric, f"metric-{index}"),
            covered=False,
        )
        for index, metric in enumerate(metrics)
    ]
    other_notes = tag("p", " ".join(notes(rows)[:-1]), class_="note")  # the last note is in the header
    headings = [_keep_on_one_line(column.heading) for column in shown]
    results = table("One row for each cell", headings, cells, class_="numbers")
    yield tag(
        "main",
        *charts,
        section("The table", results, other_notes, covered=False),
        section("The command", code_block(command, "Command")),
    )
    yield tag("footer", tag("p", _FOOTER), tag("p", describe_code(rows)))


def render_metric(rows: Sequence[Row], metric: str, key: str) -> Html:
    """Chart a metric by the first swept field, with a line for each experiment; as dots where nothing is swept."""
    measured = [row for row in rows if row.metric == metric]
    missing = [_join_fields(row, {path: path for path in row.swept}) for row in measured if row.is_missing]
    note = f"Not drawn, because the runs diverged: {'; '.join(missing)}." if missing else ""
    figure = render_chart(metric_chart(measured, metric), key, note=note, source="results.jsonl")
    return tag("div", figure, class_="charts")


def metric_chart(rows: Sequence[Row], metric: str) -> Panel:
    """Return the chart of a metric after the last round, with standard errors."""
    title, swept = f"{capitalize(metric)} after the last round", list(rows[0].swept)
    if not swept:
        names = tuple((float(place), row.name) for place, row in enumerate(rows))
        curve = _metric_curve(metric, {float(place): row for place, row in enumerate(rows)})
        options: dict[str, Any] = {"x_names": names, "as_rows": True}
        return Panel(f"{title}{_ERRORS}", metric, "", (curve,), percent=is_share(metric), **options)
    x_field, *others = swept
    positions = _positions(list(dict.fromkeys(row.swept[x_field] for row in rows)))
    series: dict[str, dict[float, Row]] = {}
    for row in rows:
        series.setdefault(_join_fields(row, short_names(others)), {})[positions[row.swept[x_field]]] = row
    low, high = min(positions.values()), max(positions.values())
    return Panel(
        f"{title} by {x_field}{_ERRORS}",
        short_names(swept)[x_field],
        "",
        tuple(_metric_curve(name, cells) for name, cells in series.items()),
        log_x=0 < 5 * low <= high < math.inf,  # numbers that are far apart
        percent=is_share(metric),
        x_names=tuple((x, name) for name, x in positions.items()),
    )


def _metric_curve(name: str, rows: Mapping[float, Row]) -> Curve:
    known = {x: row for x, row in rows.items() if not row.is_missing}
    means = tuple(Point(x, math.nan if row.mean is None else row.mean) for x, row in known.items())
    return Curve(name, means, errors=tuple(row.standard_error or 0.0 for row in known.values()))


def _positions(values: list[str]) -> dict[str, float]:
    """Return where each value is along the x-axis: at its number, or one after another if some are not numbers."""
    try:
        return {value: float(value) for value in values}
    except ValueError:
        return {value: float(place) for place, value in enumerate(values)}


def _join_fields(row: Row, names: Mapping[str, str]) -> str:
    """Name a row by its experiment and its values of some swept fields, given as path and name."""
    return ", ".join([row.name, *(f"{name} {row.swept[path]}" for path, name in names.items())])


def _keep_on_one_line(text: str) -> str:
    """Keep a number and its error on one line; a wide table scrolls."""
    return text.replace(" ", "\u00a0")


def _join_names(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


_ERRORS = ", with standard errors"
_FOOTER = (
    "Written by discreet from results.jsonl in the same folder. Test metrics were computed from the data without "
    "noise: show them only to those who may see the data."
)
