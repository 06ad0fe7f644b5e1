"""`discreet init`: a commented experiment to start from."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from discreet.cli.output import Json, emit
from discreet.errors import InvalidInput

EPILOG = """\b
Examples:
  discreet init
  discreet init visits.toml --table visits.csv --client hospital \\
      --label readmitted
"""

File: TypeAlias = Annotated[Path, typer.Argument(metavar="[FILE]", hidden=True)]


def init(
    file: File = Path("experiment.toml"),
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own table, CSV or Parquet; default: the digits.")
    ] = None,
    client: Annotated[str | None, typer.Option(metavar="COLUMN", help="Names whose row it is.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="What is to be predicted.")] = None,
    ranges: Annotated[
        Path, typer.Option(metavar="TOML", show_default=False, help="Public ranges of its columns: ranges.toml.")
    ] = Path("ranges.toml"),
    as_json: Json = False,
) -> None:
    """Write a commented experiment to FILE, or to experiment.toml.

    For a table of your own, `discreet data check FILE --write-ranges` then writes the ranges to fill in.
    """
    from discreet.experiment.configuration.starter_files import starter_file

    if table is None and (client or label):
        raise InvalidInput("--client and --label name columns of a table.", fix="Name it with --table.")
    text = starter_file(table, client, label, ranges, beside=file.parent)
    try:
        with open(file, "x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise InvalidInput(f"{file} is there already, and is left as it is.", fix="Name another file.") from None
    except OSError as error:
        raise InvalidInput(f"{file} can't be written ({error.strerror}).") from None
    steps = [f"discreet plan {file}", f"discreet run {file}"]
    if table is not None:
        steps.insert(0, f"discreet data check {table} --client {client} --label {label} --write-ranges {ranges}")
    listed = list(steps)
    if table is not None:
        listed.insert(1, f"replace the numbers in {ranges} by publicly known ones, and delete its line taken_from_data")
    page = [f"Wrote {file}. Next:", *(f"  {step}" for step in listed)]
    emit(lambda: {"file": str(file), "next": steps}, lambda: ["\n".join(page)], as_json=as_json)
