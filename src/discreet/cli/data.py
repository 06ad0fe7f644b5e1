"""`discreet data check`: whether a data owner's table fits, and what is still needed to train on it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as Grid

from discreet.cli import datasets
from discreet.cli.options import needed
from discreet.cli.output import Json, emit
from discreet.errors import InvalidInput

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

OWNERS_EYES = "This page is about private data and protected by nothing: for the data owner's eyes only."
REPLACE = (
    "Its numbers come from the data. Replace them by publicly known bounds before training, then delete the line "
    "taken_from_data: while it is there, training refuses them, unless it is told --accept-data-ranges."
)

app = typer.Typer(
    help="Public data sets; whether your own table fits.",
    epilog=GROUP_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("list", epilog=datasets.LIST_EPILOG)(datasets.list_)
app.command("get", epilog=datasets.GET_EPILOG)(datasets.get)

File: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", hidden=True)]  # the text above the options tells of it


@app.callback()
def _data() -> None:
    pass


@app.command(epilog=EPILOG)
def check(
    path: File,
    client: Annotated[str | None, typer.Option(metavar="COLUMN", help="Names whose row it is.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="What is to be predicted.")] = None,
    ranges: Annotated[Path | None, typer.Option(metavar="TOML", help="Publicly known ranges to check against.")] = None,
    write_ranges: Annotated[
        Path | None, typer.Option(metavar="TOML", help="Write a starter for them there, to be edited.")
    ] = None,
    non_iid: Annotated[
        bool, typer.Option("--non-iid", help="Also train without privacy, to see how unlike the clients are.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Whether the table FILE, CSV or Parquet, fits, and what it lacks.

    Its clients and their sizes, the columns and their types, the labels, and what is missing.

    What it prints is about private data and for its owner's eyes only. Exit code 0 when it fits, 2 when not.
    """
    from discreet.data.tables.file_reader import open_table
    from discreet.data.tables.ranges import load_ranges
    from discreet.data.tables.starter_ranges import starter_ranges, write_starter
    from discreet.data.tables.table_survey import survey_table

    client, label = needed("--client", client), needed("--label", label)
    if write_ranges is not None and write_ranges.exists():
        raise InvalidInput(f"{write_ranges} exists, and is left as it is.", fix="Name a new file for --write-ranges.")
    known = load_ranges(ranges) if ranges is not None else None
    table = open_table(path)
    found = survey_table(table, client=client, label=label, ranges=known)
    if write_ranges is not None:
        write_starter(found, write_ranges)
    written = str(write_ranges) if write_ranges is not None else None
    unlike = None
    if non_iid and found.fits:
        from discreet.data.heterogeneity import measure_table_heterogeneity

        unlike = measure_table_heterogeneity(table, known or starter_ranges(found), client=client, label=label)
    facts = {"ranges_written": written} | ({"non_iid": unlike.facts() if unlike else None} if non_iid else {})
    emit(lambda: found.facts() | facts, lambda: _page(found, written, unlike), as_json=as_json)
    if not found.fits:
        raise typer.Exit(InvalidInput.exit_code)


def _page(found: "Survey", written: str | None, unlike: "Heterogeneity | None") -> Iterator[RenderableType]:
    facts = found.facts()
    clients = facts["clients"]
    yield OWNERS_EYES
    yield ""
    yield f"{facts['file']}: {facts['examples']:,} examples of {clients['count']:,} clients"
    yield (
        f"Examples a client: {clients['smallest']:,} at least, {clients['median']:,g} in the middle, "
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
    if unlike is not None:
        yield ""
        yield from _heterogeneity_page(unlike)
        yield ""
    if written is not None:
        yield f"Wrote {written}. {REPLACE}"
    if found.fits:
        yield "It fits."
    else:
        yield f"It does not fit: {len(found.problems)} problem{'s' if len(found.problems) > 1 else ''}."
        for problem in found.problems:
            yield Padding(f"- {problem}", (0, 2))


def _heterogeneity_page(unlike: "Heterogeneity") -> Iterator[RenderableType]:
    """Γ and how the labels differ, in words."""
    from discreet.data.heterogeneity import NOT_COVERED

    how = f"an estimate, by {unlike.iterations:,} iterations of gradient descent" if unlike.iterations else "exactly"
    yield f"How unlike the clients are, by a linear model of all columns ({how}):"
    told = [
        f"Γ = {unlike.gamma:.4g}: {unlike.share:.0%} of the loss {unlike.pooled_loss:.4g} of the best model of all "
        f"data. The clients' own models have {unlike.own_loss:.4g}, on the same data."
    ]
    if unlike.label_distance is not None:
        told.append(f"A client's labels lie {unlike.label_distance:.2f} from all labels (total variation, mean).")
    told.append(f"As many clients who draw from one distribution would show about Γ = {unlike.chance:.2g} by chance.")
    told.append(NOT_COVERED)
    for line in told:
        yield Padding(f"- {line}", (0, 2))


def _column_table(columns: list[dict[str, Any]]) -> Grid:
    grid = Grid(box=None, padding=(0, 3, 0, 0), pad_edge=False)
    for heading in ("column", "type", "holds"):
        grid.add_column(heading)
    for heading in ("missing", "outside"):
        grid.add_column(heading, justify="right")
    for column in columns:
        grid.add_row(
            column["name"], column["type"], _describe_values(column), f"{column['missing']:,}", f"{column['outside']:,}"
        )
    return grid


def _describe_values(column: dict[str, Any]) -> str:
    if "min" in column:
        return f"{column['min']:g} to {column['max']:g}"
    values = column.get("values", [])
    return ", ".join(values[:4]) + (f", … ({len(values)} in all)" if len(values) > 4 else "")
