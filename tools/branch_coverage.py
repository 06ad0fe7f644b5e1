"""Print the share of branches that tests take, for each room, and fail if a room that privacy rests on has too little.

`make coverage` runs the tests, and this on the report that `coverage json` writes.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

FLOORS = {"privacy": 0.95, "privacy/ledger": 0.95, "secure_sums": 0.95}
PACKAGE = "src/discreet/"


class Branches(NamedTuple):
    """How many branches code has, and how many of them were taken."""

    taken: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        return self.taken / self.total if self.total else 1.0

    def __str__(self) -> str:
        return f"{self.share:7.1%} of {self.total:,} branches"


def branches_by_file(report: dict[str, Any]) -> dict[str, Branches]:
    """Return the branches of each file of the package, by its path below it."""
    found = {}
    for path, file in report["files"].items():
        _, inside, name = path.replace("\\", "/").rpartition(PACKAGE)
        if inside:
            found[name] = Branches(file["summary"]["covered_branches"], file["summary"]["num_branches"])
    return found


def branches_by_room(files: dict[str, Branches]) -> dict[str, Branches]:
    """Return the sums over each room, and over each folder with a floor of its own."""
    rooms: defaultdict[str, Branches] = defaultdict(Branches)
    for path, file in files.items():
        for room in {path.partition("/")[0], *(folder for folder in FLOORS if path.startswith(f"{folder}/"))}:
            rooms[room] = Branches(rooms[room].taken + file.taken, rooms[room].total + file.total)
    return dict(rooms)


def main(report: Path) -> int:
    files = branches_by_file(json.loads(report.read_text(encoding="utf-8")))
    rooms = branches_by_room(files)
    for room, branches in sorted(rooms.items()):
        print(f"{branches}  {room}")
    low = [room for room, floor in FLOORS.items() if room not in rooms or rooms[room].share < floor]
    for room in low:
        print(f"{room} must have at least {FLOORS[room]:.0%} of its branches taken by tests. Missing most:")
        inside = [(file.total - file.taken, path) for path, file in files.items() if path.startswith(f"{room}/")]
        for missing, path in sorted(inside, reverse=True)[:8]:
            print(f"  {missing:3} missing in {path}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
