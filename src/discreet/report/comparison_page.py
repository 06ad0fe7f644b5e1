"""The page of a comparison: one table and its charts in one HTML file; and the table in Markdown."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from discreet.experiment.metrics import capitalize
from discreet.privacy.wording import join_words
from discreet.report import comparison_charts, run_page
from discreet.report.chart_figures import render_chart
from discreet.report.comparison_columns import columns, describe_shared
from discreet.report.comparison_rows import Row, describe_code, describe_seeds, describe_tuning, notes
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
    title = comparison_title(rows)
    return run_page.html_page(title, join(_body(rows, title, command)))


def render_markdown(rows: Sequence[Row], command: str) -> str:
    """Return the table, its notes and the command as Markdown."""
    shown = columns(rows)
    lines = [[column.heading for column in shown], ["---" if column.is_text else "---:" for column in shown]]
    lines += [list(cells) for cells in zip(*(column.cells for column in shown), strict=True)]
    text = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return f"{text}\n\n{' '.join(notes(rows))}\n\n`{command}`\n"


def comparison_title(rows: Sequence[Row]) -> str:
    """Return the title: the experiments, or the one experiment and what was swept."""
    names = list(dict.fromkeys(row.name for row in rows))
    if len(names) > 1:
        return f"{join_words(names) if len(names) <= MAX_NAMES else f'{len(names)} experiments'} compared"
    return f"{names[0]} by {join_words(list(rows[0].swept))}" if rows[0].swept else names[0]


def _body(rows: Sequence[Row], title: str, command: str) -> Iterator[Html]:
    yield tag(
        "header",
        tag("p", "Comparison", class_="eyebrow"),
        tag("h1", title),
        tag(
            "div",
            tag("p", describe_seeds(rows)),
            tag("p", describe_tuning(rows)),
            class_="verdict none",
            role="note",
            aria_label="Verdict",
        ),
    )
    every = columns(rows)
    shown = [column for column in every if column.shared_value is None]
    cells = zip(*(map(_format_cell, column.cells) for column in shown), strict=True)
    metrics = list(dict.fromkeys(row.metric for row in rows if row.metric))
    charts = [
        section(
            f"{capitalize(metric)}, measured on test data",
            render_metric(rows, metric, f"metric-{index}"),
            covered=False,
        )
        for index, metric in enumerate(metrics)
    ]
    sentences = filter(None, [describe_shared(every), *notes(rows)[:-1]])  # the last note is in the header
    other_notes = tag("p", " ".join(sentences), class_="note")
    results = table(
        "One row for each cell", [column.heading for column in shown], cells, stacked=True, class_="numbers stack"
    )
    yield tag(
        "main",
        *charts,
        section("The table", results, other_notes, covered=False),
        section("The command", code_block(command, "Command", is_wrapped=True)),
    )
    yield tag("footer", tag("p", _FOOTER), tag("p", describe_code(rows)))


def render_metric(rows: Sequence[Row], metric: str, key: str) -> Html:
    """Chart a metric by the first swept field, with a line for each experiment; as dots where nothing is swept."""
    measured = [row for row in rows if row.metric == metric]
    chart, note = comparison_charts.metric_chart(measured, metric), comparison_charts.chart_note(measured)
    return tag("div", render_chart(chart, key, note=note, source="results.jsonl"), class_="charts")


def _format_cell(text: str) -> str:
    """Keep a number and its error on one line, and let a long name break after its underscores only."""
    first, *others = text.replace(" ", "\u00a0").split("_")
    if not others:
        return first
    return tag("span", first, *(child for part in others for child in ("_", Html("<wbr>"), part)), class_="name")


_FOOTER = (
    "Written by discreet from results.jsonl in the same folder. Test metrics were computed from the data without "
    "noise: show them only to those who may see the data."
)
