"""Files of JSON lines that grow while a run goes on."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from discreet.errors import InvalidInput
from discreet.json_reader import Built, parse_json


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Append a line; it is on the disk when this returns."""
    with open(path, "ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path, build: Callable[[Any], Built], fix: str) -> list[Built]:
    """Return all whole lines, in order. A writer that was killed may have left its last line unfinished.

    Args:
        path: The file; one that is not there has no lines.
        build: Makes the result of a line's data, and may fail if the data has another form.
        fix: What to do about a damaged file.

    Raises:
        InvalidInput: A line is damaged, or the file can't be read.
    """
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInput(f"{path} can't be read ({error.strerror}).", fix=fix) from None
    return [
        parse_json(line, build, InvalidInput(f"Line {number} of {path} can't be read.", fix=fix))
        for number, line in enumerate(lines, start=1)
    ]


def remove_unfinished(file: BinaryIO) -> None:
    """Remove the last line if a writer was killed in it, so that the next line is not added to it."""
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)
