"""The page of a comparison: one table and its charts in one HTML file; and the table in Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from discreet.experiment.metrics import capitalize, is_share
from discreet.report import run_page
from discreet.report.comparison_rows import TUNING, Row, columns, describe_seeds, heading, notes, short_names
from discreet.report.markup import Html, join, table, tag
from discreet.report.page_sections import code_block, section
from discreet.report.plotly_figures import COLOURS, layout, render_figure

NAME = "compare.html"
TABLE = "table.md"
MAX_NAMES = 4  # more experiments than this are counted in the title, not named
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
DASHES = ("solid", "dash", "dot")


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
        section(f"{capitalize(metric)}, measured on test data", render_metric(rows, metric), covered=False)
        for metric in metrics
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
    yield tag("footer", tag("p", _FOOTER))


def render_metric(rows: Sequence[Row], metric: str) -> Html:
    """Chart a metric by the first swept field, with a line for each experiment; as bars where nothing is swept."""
    measured = [row for row in rows if row.metric == metric]
    swept = list(measured[0].swept)
    figure, description = _line_figure(measured, swept, metric) if swept else _bar_figure(measured, metric)
    missing = [_join_fields(row, {path: path for path in row.swept}) for row in measured if row.is_missing]
    note = tag("p", f"Not drawn, because the runs diverged: {'; '.join(missing)}.", class_="note") if missing else None
    caption = f"{capitalize(metric)} after the last round" + (f" by {swept[0]}" if swept else "")
    return render_figure(f"metric-{metric}", f"{caption}, with standard errors", description, figure, note, tall=True)


def _line_figure(rows: Sequence[Row], swept: list[str], metric: str) -> tuple[Any, str]:
    import plotly.graph_objects as go

    x_field, *others = swept
    series: dict[str, list[Row]] = {}
    for row in rows:
        series.setdefault(_join_fields(row, short_names(others)), []).append(row)
    values = list(dict.fromkeys(row.swept[x_field] for row in rows))
    axis, positions = _x_axis(values)
    style = layout(short_names(swept)[x_field], percent=is_share(metric))
    style["xaxis"] = {**style["xaxis"], **axis}
    style |= {"height": 400, "showlegend": len(series) > 1, "hovermode": "closest"}
    figure = go.Figure(layout=style)
    for index, (name, cells) in enumerate(series.items()):
        kept = [row for row in cells if not row.is_missing]
        turn, colour = divmod(index, len(COLOURS))
        figure.add_scatter(
            x=[positions[row.swept[x_field]] for row in kept],
            y=[row.mean for row in kept],
            error_y={"array": [row.standard_error or 0 for row in kept], "thickness": 1.5, "width": 5},
            name=escape(name),
            mode="lines+markers",
            line={"color": COLOURS[colour], "width": 2, "dash": DASHES[turn % len(DASHES)]},
            marker={"size": 7, "symbol": SYMBOLS[index % len(SYMBOLS)]},
            customdata=[row.swept[x_field] for row in kept],
            hovertemplate=f"%{{customdata}}: %{{y:{_format(metric)}}}<extra>{escape(name)}</extra>",
        )
    values_in_words = "; ".join(
        f"{name}: {', '.join(f'{row.format_metric()} at {row.swept[x_field]}' for row in cells)}"
        for name, cells in series.items()
    )
    return figure, f"Line chart of {heading(metric)} by {x_field}. {values_in_words}."


def _bar_figure(rows: Sequence[Row], metric: str) -> tuple[Any, str]:
    import plotly.graph_objects as go

    style = layout("", percent=is_share(metric))
    style["xaxis"] = {**style["xaxis"], "type": "category", "tickformat": ""}
    figure = go.Figure(layout=style | {"height": 400, "showlegend": False, "hovermode": "closest", "bargap": 0.5})
    kept = [row for row in rows if not row.is_missing]
    figure.add_bar(
        x=[escape(row.name) for row in kept],
        y=[row.mean for row in kept],
        error_y={
            "array": [row.standard_error or 0 for row in kept],
            "thickness": 2,
            "width": 7,
            "color": COLOURS[1],
        },
        marker={"color": COLOURS[0]},
        width=min(0.5, 0.15 * len(kept)),
        hovertemplate=f"%{{x}}: %{{y:{_format(metric)}}}<extra></extra>",
    )
    values_in_words = "; ".join(f"{row.name}: {row.format_metric()}" for row in rows)
    return figure, f"Bar chart of {heading(metric)}. {values_in_words}."


def _x_axis(values: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the x-axis and the position of each value; logarithmic if numbers are far apart."""
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        return {"type": "category", "tickformat": "", "categoryarray": values}, {value: value for value in values}
    low, high = min(numbers.values()), max(numbers.values())
    is_wide = math.isfinite(high) and 0 < 5 * low <= high
    ticks = {"tickvals": list(numbers.values()), "ticktext": list(numbers), "tickformat": ""}
    return {"type": "log" if is_wide else "linear", **ticks}, numbers


def _join_fields(row: Row, names: Mapping[str, str]) -> str:
    """Name a row by its experiment and its values of some swept fields, given as path and name."""
    return ", ".join([row.name, *(f"{name} {row.swept[path]}" for path, name in names.items())])


def _format(metric: str) -> str:
    return ".2%" if is_share(metric) else ".4~g"


def _keep_on_one_line(text: str) -> str:
    """Keep a number and its error on one line; a wide table scrolls."""
    return text.replace(" ", "\u00a0")


def _join_names(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


_FOOTER = (
    "Written by discreet from results.jsonl in the same folder. Test metrics were computed from the data without "
    "noise: show them only to those who may see the data."
)
