"""`discreet data check`: check whether a table can be trained on, and report what it lacks."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli import datasets
from discreet.cli.help_page import command_group
from discreet.cli.output import Json, emit
from discreet.cli.text_table import text_table
from discreet.errors import InvalidInput
from discreet.report.number_format import format_count

if TYPE_CHECKING:
    from discreet.data.heterogeneity import Heterogeneity
    from discreet.data.tables.table_survey import Survey

GROUP_EPILOG = """\b
Examples:
  discreet data list
  discreet data get mnist
  discreet data check visits.csv --client hospital --label readmitted
"""
EPILOG = """\b
Examples:
  discreet data check visits.csv --client hospital --label readmitted
  discreet data check visits.csv --client hospital --label readmitted \\
      --write-ranges ranges.toml
  discreet data check visits.csv --client hospital --label readmitted \\
      --ranges ranges.toml --non-iid
"""

OWNER_ONLY = "This page describes private data, and nothing protects it: only the data owner may see it."
REPLACE = (
    "Its numbers come from the data. Replace them by publicly known bounds, then delete the line taken_from_data: "
    "while that line is there, training refuses them, unless you pass --accept-data-ranges."
)

app = command_group("List and download public data sets; check your own table.", GROUP_EPILOG)
app.command("list", epilog=datasets.LIST_EPILOG)(datasets.list_)
app.command("get", epilog=datasets.GET_EPILOG)(datasets.get)

File: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", hidden=True)]  # the docstring describes it


@app.callback()
def _data() -> None:
    pass


@app.command(epilog=EPILOG)
def check(
    path: File,
    client: Annotated[str, typer.Option(metavar="COLUMN", help="Column that names the client of each row.")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column to predict.")],
    ranges: Annotated[
        Path | None, typer.Option(metavar="TOML", help="File of publicly known ranges to check the table against.")
    ] = None,
    write_ranges: Annotated[
        Path | None, typer.Option(metavar="TOML", help="Write a new file of ranges, taken from the data, to edit.")
    ] = None,
    non_iid: Annotated[
        bool, typer.Option("--non-iid", help="Measure how much the clients differ: trains without privacy.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check whether the table FILE, CSV or Parquet, can be trained on.

    Shows the clients and their sizes, the columns and their types, the labels and the missing values.

    The output describes private data: only the data owner may see it. Exit code 0 if it can be trained on, 2 if not.
    """
    from discreet.data.tables.file_reader import open_table
    from discreet.data.tables.ranges import load_ranges
    from discreet.data.tables.starter_ranges import starter_ranges, write_starter
    from discreet.data.tables.table_survey import survey_table

    if write_ranges is not None and write_ranges.exists():
        raise InvalidInput(f"{write_ranges} exists, and is not overwritten.", fix="Name a new file for --write-ranges.")
    known = load_ranges(ranges) if ranges is not None else None
    table = open_table(path)
    writes = write_ranges is not None
    findings = survey_table(table, client=client, label=label, ranges=known, writes_ranges=writes)
    if write_ranges is not None:
        write_starter(findings, write_ranges)
    written = str(write_ranges) if write_ranges is not None else None
    difference = None
    if non_iid and findings.is_readable:
        from discreet.data.heterogeneity import measure_table_heterogeneity

        difference = measure_table_heterogeneity(table, known or starter_ranges(findings), client=client, label=label)
    facts = {"ranges_written": written} | ({"non_iid": difference.facts() if difference else None} if non_iid else {})
    emit(lambda: findings.facts() | facts, lambda: _page(findings, written, difference), as_json=as_json)
    if not findings.is_readable:
        raise typer.Exit(InvalidInput.exit_code)


def _page(survey: "Survey", written: str | None, difference: "Heterogeneity | None") -> Iterator[RenderableType]:
    facts = survey.facts()
    clients = facts["clients"]
    yield OWNER_ONLY
    yield ""
    examples = format_count(facts["examples"], "examples")
    yield f"{facts['file']}: {examples} of {format_count(clients['count'], 'clients')}"
    yield (
        f"Examples per client: {clients['smallest']:,} at least, median {clients['median']:,g}, "
        f"{clients['largest']:,} at most."
    )
    yield ""
    yield Padding(
        _column_table([*facts["columns"], facts["label"] | {"name": f"{facts['label']['name']} (label)"}]), (0, 2)
    )
    yield ""
    if facts["label"]["counts"]:
        yield "Labels: " + ", ".join(f"{value} ({count:,})" for value, count in facts["label"]["counts"].items())
    yield from facts["notes"]
    if difference is not None:
        yield ""
        yield from _heterogeneity_page(difference)
        yield ""
    if written is not None:
        yield f"Wrote {written}. {REPLACE}"
    if survey.is_readable and survey.remarks:
        verb = "asks" if len(survey.remarks) == 1 else "ask"
        yield f"The table can be read. {format_count(len(survey.remarks), 'remarks')} above {verb} for a remedy."
    elif survey.fits:
        yield "The table fits."
    else:
        yield f"The table does not fit: {format_count(len(survey.problems), 'problems')}."
        for problem in survey.problems:
            yield Padding(f"- {problem}", (0, 2))


def _heterogeneity_page(measured: "Heterogeneity") -> Iterator[RenderableType]:
    """Describe Γ, and how far the clients' labels differ."""
    from discreet.data.heterogeneity import NOT_COVERED

    count = measured.iterations
    how = f"an estimate, by {count:,} iterations of gradient descent" if count else "exact"
    yield f"How much the clients differ, measured by a linear model of all columns ({how}):"
    sentences = [
        f"Γ = {measured.gamma:.4g}: {measured.share:.0%} of {measured.pooled_loss:.4g}, the loss of the best model of "
        f"all data. The clients' own models have a loss of {measured.own_loss:.4g} on the same data.",
        f"As many clients who draw from one distribution would show about Γ = {measured.gamma_by_chance:.2g} by "
        "chance.",
        NOT_COVERED,
    ]
    if (distance := measured.label_distance) is not None:
        sentences.insert(1, f"A client's labels differ from all labels by {distance:.2f} (total variation, mean).")
    for sentence in sentences:
        yield Padding(f"- {sentence}", (0, 2))


def _column_table(columns: list[dict[str, Any]]) -> Table:
    table = text_table("column", "type", "values", "missing", "outside", right=("missing", "outside"))
    for column in columns:
        missing, outside = f"{column['missing']:,}", f"{column['outside']:,}"
        table.add_row(column["name"], column["type"], _describe_values(column), missing, outside)
    return table


def _describe_values(column: dict[str, Any]) -> str:
    if "min" in column:
        return f"{column['min']:g} to {column['max']:g}"
    if "first" in column:
        return f"{column['first']} to {column['last']}"
    values = column.get("values", [])
    return ", ".join(values[:4]) + (f", … ({len(values)} in total)" if len(values) > 4 else "")
