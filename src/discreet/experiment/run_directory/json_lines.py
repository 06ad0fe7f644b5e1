"""Files of JSON lines that grow while a run goes on."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Append a line; it is on the disk when this returns."""
    with open(path, "ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return all whole lines, in order. A writer that was killed may have left its last line unfinished."""
    if not path.is_file():
        return []
    *lines, _ = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines]
