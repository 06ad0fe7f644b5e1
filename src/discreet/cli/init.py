"""`discreet init`: write a commented experiment file to start from."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from discreet.cli.options import ViewWord, parse_unit, parse_view
from discreet.cli.output import Json, emit
from discreet.errors import InvalidInput
from discreet.paths import write_new_file

DEFAULT_RANGES = Path("ranges.toml")
EPILOG = """\b
Examples:
  discreet init
  discreet init visits.toml --table visits.csv --client hospital \\
      --label readmitted
  discreet init visits.toml --table visits.csv --client hospital \\
      --label readmitted --unit person:patient:20
"""

File: TypeAlias = Annotated[Path, typer.Argument(metavar="[FILE]", hidden=True)]


def init(
    file: File = Path("experiment.toml"),
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default="digits", help="Your own table, CSV or Parquet.")
    ] = None,
    client: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that names the client of each row.")
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column to predict.")] = None,
    ranges: Annotated[
        Path, typer.Option(metavar="TOML", help="File with the publicly known ranges of the columns.")
    ] = DEFAULT_RANGES,
    unit: Annotated[
        str,
        typer.Option(
            metavar="UNIT", help="Whom the promise protects: example, client or person:COLUMN:ROWS[:CLIENTS]."
        ),
    ] = "example",
    against: Annotated[ViewWord, typer.Option(help="From whom; client and clients are the same.")] = "server",
    as_json: Json = False,
) -> None:
    """Write a commented experiment to FILE, or to experiment.toml.

    For your own table, `discreet data check --write-ranges` writes the file of ranges, which you edit. Clip, rate and
    sampling follow from the number of columns, rows and clients.
    """
    from discreet.data.tables.ranges import load_ranges
    from discreet.experiment.configuration import experiment_schema
    from discreet.experiment.configuration.starter_files import starter_file

    if table is None and (client or label):
        raise InvalidInput("--client and --label need a table.", fix="Name it with --table.")
    if table is None and (unit, against) != ("example", "server"):
        raise InvalidInput("--unit and --against need a table.", fix="Name it with --table.")
    if table is None and ranges != DEFAULT_RANGES:
        raise InvalidInput("--ranges needs a table.", fix="Name it with --table.")
    view = parse_view(against)
    found = next((path for path in (file.parent / ranges, ranges) if path.is_file()), None)
    text = starter_file(table, client, label, ranges, beside=file.parent, unit=parse_unit(unit), against=view)
    write_new_file(file, experiment_schema.DIRECTIVE + text)
    schema = file.parent / experiment_schema.NAME
    experiment_schema.write_schema(schema)
    steps = [f"discreet plan {file}", f"discreet run {file}"]
    is_new = found is None
    if table is not None:
        option = "--write-ranges" if is_new else "--ranges"
        steps.insert(0, f"discreet data check {table} --client {client} --label {label} {option} {ranges}")
    instructions = list(steps)
    is_from_data = table is not None and found is not None and load_ranges(found).taken_from_data
    if table is not None and (is_new or is_from_data):
        by_hand = f"replace the numbers in {ranges} by publicly known ones, and delete its line taken_from_data"
        instructions.insert(1, by_hand)
    page = [
        f"Wrote {file}, and {schema.name}, by which editors complete and check it. Next:",
        *(f"  {step}" for step in instructions),
    ]
    if is_from_data:
        page.append(f"The ranges in {found} were taken from the data: training refuses them until then.")
    data = {"file": str(file), "schema": str(schema), "next": steps, "ranges_taken_from_data": is_from_data}
    emit(lambda: data, lambda: ["\n".join(page)], as_json=as_json)
