"""The page of a comparison: one table and one picture, in one file that loads nothing; and the table in Markdown."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from discreet.report import run_page
from discreet.report.comparison_rows import SEEDED, TUNING, Row, columns, heading, notes, short_names
from discreet.report.markup import Html, join, table, tag
from discreet.report.page_sections import NOT_COVERED
from discreet.report.plotly_figures import COLOURS, Chart, layout, render_figure

NAME = "compare.html"
TABLE = "table.md"
MOST_NAMED = 4
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
DASHES = ("solid", "dash", "dot")


def write(folder: Path, rows: Sequence[Row], command: str) -> tuple[Path, Path]:
    """Both files, each whole or not at all."""
    return run_page.write_atomically(folder / NAME, render_page(rows, command)), run_page.write_atomically(
        folder / TABLE, render_markdown(rows, command)
    )


def render_page(rows: Sequence[Row], command: str) -> str:
    title = _title(rows)
    return run_page.html_page(title, join(_body(rows, title, command)))


def render_markdown(rows: Sequence[Row], command: str) -> str:
    found = columns(rows)
    lines = [[column.heading for column in found], ["---" if column.text else "---:" for column in found]]
    lines += [list(cells) for cells in zip(*(column.cells for column in found), strict=True)]
    drawn = "\n".join("| " + " | ".join(each.replace("|", "\\|") for each in line) + " |" for line in lines)
    return f"{drawn}\n\n{' '.join(notes(rows))}\n\n`{command}`\n"


def _title(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(row.name for row in rows))
    if len(names) > 1:
        return f"{_join_names(names) if len(names) <= MOST_NAMED else f'{len(names)} experiments'} compared"
    return f"{names[0]} by {_join_names(list(rows[0].swept))}" if rows[0].swept else names[0]


def _body(rows: Sequence[Row], title: str, command: str) -> Iterator[Html]:
    yield tag(
        "header",
        tag("p", "Comparison", class_="eyebrow"),
        tag("h1", title),
        tag("div", tag("p", SEEDED), tag("p", TUNING), class_="verdict none", role="note", aria_label="Verdict"),
    )
    found = columns(rows)
    cells = zip(*(map(_keep_on_one_line, column.cells) for column in found), strict=True)
    badge = tag("span", NOT_COVERED, class_="badge")
    metrics = list(dict.fromkeys(row.metric for row in rows if row.metric))
    pictures = [
        _section(f"{_named(metric)}, measured on test data", render_metric(rows, metric), badge) for metric in metrics
    ]
    told = tag("p", " ".join(notes(rows)[:-1]), class_="note")  # the last of them stands above
    laid = table("A row a cell", [_keep_on_one_line(column.heading) for column in found], cells, class_="numbers")
    yield tag(
        "main", *pictures, _section("The table", join([laid, told]), badge), _section("The command", _code(command))
    )
    yield tag("footer", tag("p", _FOOTER))


def render_metric(rows: Sequence[Row], metric: str) -> Html:
    """The metric against the swept field, a line an experiment; bars where nothing is swept."""
    measured = [row for row in rows if row.metric == metric]
    swept = list(measured[0].swept)
    made, told = _line_figure(measured, swept, metric) if swept else _bar_figure(measured, metric)
    lost = [_cell_name(row) for row in measured if row.lost]
    note = tag("p", f"Diverged, so not drawn: {'; '.join(lost)}.", class_="note") if lost else None
    caption = f"{_named(metric)} after the last round" + (f" by {swept[0]}" if swept else "")
    return render_figure(f"metric-{metric}", f"{caption}, with standard errors", told, made, note, tall=True)


def _line_figure(rows: Sequence[Row], swept: list[str], metric: str) -> tuple[Any, str]:
    import plotly.graph_objects as go

    across, *others = swept
    series: dict[str, list[Row]] = {}
    for row in rows:
        series.setdefault(_series_name(row, others), []).append(row)
    values = list(dict.fromkeys(row.swept[across] for row in rows))
    axis, at = _x_axis(values)
    drawn = layout(_chart(metric, short_names(swept)[across]))
    drawn["xaxis"] = {**drawn["xaxis"], **axis}
    drawn |= {"height": 400, "showlegend": len(series) > 1, "hovermode": "closest"}
    made = go.Figure(layout=drawn)
    for place, (name, found) in enumerate(series.items()):
        kept = [row for row in found if not row.lost]
        turn, colour = divmod(place, len(COLOURS))
        made.add_scatter(
            x=[at[row.swept[across]] for row in kept],
            y=[row.mean for row in kept],
            error_y={"array": [row.standard_error or 0 for row in kept], "thickness": 1.5, "width": 5},
            name=escape(name),
            mode="lines+markers",
            line={"color": COLOURS[colour], "width": 2, "dash": DASHES[turn % len(DASHES)]},
            marker={"size": 7, "symbol": SYMBOLS[place % len(SYMBOLS)]},
            customdata=[row.swept[across] for row in kept],
            hovertemplate=f"%{{customdata}}: %{{y:{_format(metric)}}}<extra>{escape(name)}</extra>",
        )
    said = "; ".join(
        f"{name}: {', '.join(f'{row.measured()} at {row.swept[across]}' for row in found)}"
        for name, found in series.items()
    )
    return made, f"Line chart of {heading(metric)} by {across}. {said}."


def _bar_figure(rows: Sequence[Row], metric: str) -> tuple[Any, str]:
    import plotly.graph_objects as go

    drawn = layout(_chart(metric, ""))
    drawn["xaxis"] = {**drawn["xaxis"], "type": "category", "tickformat": ""}
    made = go.Figure(layout=drawn | {"height": 400, "showlegend": False, "hovermode": "closest", "bargap": 0.5})
    kept = [row for row in rows if not row.lost]
    made.add_bar(
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
    said = "; ".join(f"{row.name}: {row.measured()}" for row in rows)
    return made, f"Bar chart of {heading(metric)}. {said}."


def _x_axis(values: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The axis, and where on it each value lies: at its number if all are numbers, by logarithm if far apart."""
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        return {"type": "category", "tickformat": "", "categoryarray": values}, {value: value for value in values}
    low, high = min(numbers.values()), max(numbers.values())
    far = math.isfinite(high) and 0 < 5 * low <= high
    ticks = {"tickvals": list(numbers.values()), "ticktext": list(numbers), "tickformat": ""}
    return {"type": "log" if far else "linear", **ticks}, numbers


def _series_name(row: Row, others: list[str]) -> str:
    return ", ".join([row.name, *(f"{short_names(others)[path]} {row.swept[path]}" for path in others)])


def _cell_name(row: Row) -> str:
    return ", ".join([row.name, *(f"{path} {value}" for path, value in row.swept.items())])


def _chart(metric: str, across: str) -> Chart:
    return Chart("", "", (), percent=metric == "accuracy", from_zero=False, across=across)


def _format(metric: str) -> str:
    return ".2%" if metric == "accuracy" else ".4~g"


def _named(metric: str) -> str:
    return metric.upper() if metric == "mse" else metric[:1].upper() + metric[1:]


def _keep_on_one_line(text: str) -> str:
    """Numbers and their errors stay on one line: a wide table scrolls."""
    return text.replace(" ", "\u00a0")


def _section(name: str, content: Html, badge: Html | None = None) -> Html:
    named = tag("h2", name, " ", badge) if badge else tag("h2", name)
    return tag("section", named, content, class_="part uncovered" if badge else "part")


def _code(command: str) -> Html:
    return tag("pre", tag("code", command), tabindex="0", role="region", aria_label="Command")


def _join_names(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


_FOOTER = (
    "Made by discreet from results.jsonl beside it. Test metrics were computed from the data without noise: show them "
    "only to those who may see the data."
)
