"""`discreet schema`: print the JSON Schema of an experiment file."""

import json
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import Json, emit

EPILOG = """\b
Examples:
  discreet schema --out experiment.schema.json
  discreet schema --json > experiment.schema.json
"""


def schema(
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it to this file instead.")] = None,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of an experiment file.

    Editors with Taplo, such as VS Code with Even Better TOML, complete and check an experiment whose first line is
    `#:schema ./experiment.schema.json`. `discreet init` writes that line, and the schema beside the file.
    """
    from discreet.experiment.configuration.experiment_schema import schema_text, write_schema

    if out is None:
        emit(lambda: json.loads(schema_text()), lambda: [schema_text().rstrip()], as_json=as_json)
        return
    write_schema(out)
    emit(lambda: {"schema": str(out)}, lambda: [f"Wrote {out}."], as_json=as_json)
