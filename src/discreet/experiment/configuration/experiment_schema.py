"""The JSON Schema of an experiment's file, with which editors complete and check it. It loads no torch."""

import json
from pathlib import Path

from discreet.durable_files import write_durably
from discreet.errors import InvalidInput

NAME = "experiment.schema.json"
DIRECTIVE = f"#:schema ./{NAME}\n"  # the first line of a file, as Taplo and Even Better TOML read it
_STORED = Path(__file__).with_name(NAME)  # written by tools/experiment_schema.py


def schema_text() -> str:
    """Return the schema as JSON."""
    return _STORED.read_text(encoding="utf-8")


def write_schema(path: Path) -> None:
    """Write the schema to a file. Only the schema of another version is replaced.

    Raises:
        InvalidInput: Another file is there, or the file can't be written.
    """
    try:
        if path.exists() and not _is_schema(path):
            raise InvalidInput(f"{path} exists, and is not overwritten.", fix="Name another file.")
        write_durably(path, schema_text().encode())
    except OSError as error:
        raise InvalidInput(f"{path} can't be written ({error.strerror}).") from None


def _is_schema(path: Path) -> bool:
    """Whether the file is the schema of an experiment, of any version."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("title") == json.loads(schema_text())["title"]
