"""What was measured, as docs/results/speed.json keeps it: one entry for each case, device and precision."""

import json
import statistics
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Key: TypeAlias = tuple[str, str, str]  # case, device, precision


@dataclass
class SideTimes:
    """What one side took.

    Attributes:
        name: Its name.
        precision: What it computed in.
        seconds: For each turn, the mean seconds of one unit of work, scaled up if only a part of it was done.
        losses: The loss before the first unit of work and after the last one of the check; None if none is compared.
        memory: The most memory of the device that it held at once while it was checked, in bytes; None on a CPU.
        scale: By what its time was multiplied.
        first: Seconds of its first unit of work, in which it may compile.
    """

    name: str
    precision: str
    seconds: list[float] = field(default_factory=list)
    losses: list[float] | None = None
    memory: int | None = None
    scale: float = 1.0
    first: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """The first and the third quartile over turns; None with fewer than three."""
        if len(self.seconds) < 3:
            return None
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high

    @property
    def progress(self) -> float | None:
        """By how much the loss fell while both sides did the same work."""
        return None if self.losses is None else self.losses[0] - self.losses[1]


@dataclass
class Entry:
    """One case on one device in one precision.

    Attributes:
        case: The name of the case.
        device: "cpu" or "cuda".
        precision: What both sides computed in.
        size: How much work it was.
        turns: How many turns were wanted; an entry with fewer is unfinished.
        machine: The machine in words.
        versions: The versions of the libraries.
        code: The stamp of the code; None where it is not known.
        date: When the last turn was measured.
        load: The load of the machine when the last turns began.
        sides: What each side took, ours first.
        note: What a reader must know, such as that numbers were measured by an earlier script.
    """

    case: str
    device: str
    precision: str
    size: dict[str, int]
    turns: int
    machine: str
    versions: dict[str, str]
    code: str | None
    date: str
    load: float | None
    sides: list[SideTimes]
    note: str = ""

    @property
    def key(self) -> Key:
        return self.case, self.device, self.precision

    @property
    def is_complete(self) -> bool:
        return self.has_turns(self.turns)

    def has_turns(self, turns: int) -> bool:
        """Whether every side had at least so many turns, by this harness."""
        return bool(self.sides) and not self.note and all(len(side.seconds) >= turns for side in self.sides)

    def continues(self, other: "Entry") -> bool:
        """Whether turns of this entry may be added to the other's: same work, machine, libraries, code and sides."""
        mine, theirs = (
            (each.size, each.machine, each.versions, each.code, [side.name for side in each.sides])
            for each in (self, other)
        )
        return mine == theirs and not other.note


def read_entry(data: dict[str, Any]) -> Entry:
    return Entry(**data | {"sides": [SideTimes(**side) for side in data["sides"]]})


def read_entries(path: Path) -> dict[Key, Entry]:
    """Read a file of measurements. One that is not there is empty; any other fault ends the program in a sentence."""
    if not path.exists():
        return {}
    try:
        entries = [read_entry(each) for each in json.loads(path.read_text(encoding="utf-8"))["entries"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path} must hold what `python -m benchmarks --results FILE` writes, and can't be read: {error!r}")
    return {entry.key: entry for entry in entries}


def add_entry(entries: dict[Key, Entry], entry: Entry) -> None:
    """Add an entry in the place of its last one. It also replaces numbers that an earlier script measured."""
    earlier = [key for key, each in entries.items() if each.note and key[:2] == entry.key[:2]]
    for key in earlier:
        del entries[key]
    entries[entry.key] = entry


def write_entries(path: Path, entries: dict[Key, Entry], order: Iterable[str]) -> None:
    """Write all entries, those of one case beside each other."""
    places = {name: at for at, name in enumerate(order)}
    ordered = sorted(entries.values(), key=lambda entry: (places.get(entry.case, len(places)), entry.device))
    text = json.dumps({"entries": [asdict(entry) for entry in ordered]}, indent=1, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
