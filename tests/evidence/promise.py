"""A promise of this package, the tests and mutants that hold it, and the numbers that were measured of it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("promises.toml")


@dataclass(frozen=True)
class Number:
    """A measured number in words. `quote` is on `page`, which a script wrote; both are below docs/."""

    says: str
    page: str
    quote: str


@dataclass(frozen=True)
class Promise:
    """A promise in one sentence, and what holds it.

    Attributes:
        area: What the promise is about.
        says: The promise.
        tests: Tests that fail if it doesn't hold, as pytest names them.
        mutants: Faults that break it, each caught by a test (docs/mutants.md).
        numbers: What was measured.
        open: What is not shown, if anything.
    """

    area: str
    says: str
    tests: tuple[str, ...]
    mutants: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()
    open: str = ""


def load_promises(path: Path = LIST) -> list[Promise]:
    """Return all promises, in the order of the list."""
    return [
        Promise(
            area=entry["area"],
            says=entry["says"],
            tests=tuple(entry["tests"]),
            mutants=tuple(entry.get("mutants", ())),
            numbers=tuple(Number(**number) for number in entry.get("numbers", ())),
            open=entry.get("open", ""),
        )
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["promise"]
    ]
