"""The results of a drill: JSON lines, one for each kill, fault or finished run."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from discreet.code_version import read_code_version
from tests.drill.reservation_check import read_lines

Row = dict[str, Any]
KILL_RUN, FAULT_RUN = "run", "fault"  # how the names of runs begin


class Results:
    """One file of results, to which lines are appended."""

    def __init__(self, path: Path, scheme: str) -> None:
        self.path, self.scheme = path, scheme
        self.well = True

    def append(self, row: Row, kept: Path | None = None) -> bool:
        """Append and print a line. Returns whether it says that all was well; if not, `kept` is printed too."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        load = round(os.getloadavg()[0], 1)
        line = json.dumps({"scheme": self.scheme, **row, "at": at, "load": load, "code": read_code_version().commit})
        with open(self.path, "a") as file:
            file.write(line + "\n")
        sys.stdout.write(line + ("" if row["well"] else f" (kept: {kept})") + "\n")
        sys.stdout.flush()
        self.well &= bool(row["well"])
        return bool(row["well"])

    def count(self, kind: str) -> int:
        return sum(row["kind"] == kind for row in read_lines(self.path))


def read_results(folder: Path, names: str = "*") -> list[Row]:
    return [row for each in sorted(folder.glob(f"{names}.jsonl")) for row in read_lines(each)]
