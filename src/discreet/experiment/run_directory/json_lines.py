"""Files of JSON lines that grow while a run goes on, and that one process at a time may write."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from discreet.errors import InvalidInput


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


def lock_file(file: IO[bytes], busy: str, fix: str = "") -> None:
    """Lock an open file until it is closed. If another process holds it, raise InvalidInput with `busy` and `fix`."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidInput(busy, fix=fix) from None
