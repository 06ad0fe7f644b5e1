"""The contract of a tracker: it takes the numbers of each round under flat names, and at the end what is certified."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

UNCOVERED = "uncovered/"  # starts the name of every number that no guarantee covers
COVERED = frozenset({"epsilon"})  # what a guarantee covers of the record of a round


class TrackedRun(NamedTuple):
    """What a tracker knows of a run before its first round.

    Attributes:
        directory: The run directory.
        first_round: The next round. Above 1 if the run is resumed: what was written from that round on is replaced.
        rounds: Number of planned rounds.
    """

    directory: Path
    first_round: int
    rounds: int


class NumberWriter(Protocol):
    """Takes the numbers of one run."""

    def write(self, round: int, numbers: Mapping[str, float]) -> None:
        """Write the numbers of a round."""

    def finish(self, facts: Mapping[str, str]) -> None:
        """Write what is certified at the end, in words."""

    def close(self) -> None:
        """Write what is still in memory. Called once, also for a run that ended by an error."""


def round_numbers(record: Mapping[str, Any], *, uncovered: bool) -> dict[str, float]:
    """Return the numbers of a round's record under flat names: `epsilon`, `uncovered/evaluation/accuracy`.

    Args:
        record: The record of the round, as rounds.jsonl has it.
        uncovered: Whether to include numbers that no guarantee covers; their names begin with `uncovered/`.
    """
    numbers = dict(_flatten(record))
    covered = {name: value for name, value in numbers.items() if name in COVERED}
    others = {f"{UNCOVERED}{name}": value for name, value in numbers.items() if name not in COVERED}
    return covered | (others if uncovered else {})


def _flatten(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}/")
        elif _is_number(value) and (prefix or name != "round"):
            yield f"{prefix}{name}", float(value)


def _is_number(value: Any) -> bool:
    """Return whether a value of a record is a number; one that is not finite is a word there, as in JSON."""
    return value in ("inf", "-inf", "nan") or (isinstance(value, int | float) and not isinstance(value, bool))
