"""Publicly known bounds of a table's columns: scaling by them reveals nothing, since nothing was fitted on the data."""

import math
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from discreet.errors import InvalidInput
from discreet.part import Flag, Real, from_plain, part


@part
class Range:
    """A number between two public bounds; becomes one input in [-1, 1]."""

    min: Real
    max: Real

    def __post_init__(self) -> None:
        if not self.min < self.max:
            raise InvalidInput(f"A range needs min below max, and got min = {self.min:g} and max = {self.max:g}.")

    @property
    def width(self) -> int:
        return 1

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """On [-1, 1]; what lies outside is moved to the nearer end."""
        return (values.clip(self.min, self.max) - self.min) / (self.max - self.min) * 2 - 1


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    raise ValueError(f"must be text or a number, and got {value!r}")


@part
class Values:
    """One of the listed values; becomes one input for each, of which one is 1."""

    values: tuple[Annotated[str, BeforeValidator(_as_text)], ...]

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) != len(self.values):
            raise InvalidInput(f"Values must be listed, each once, and got {list(self.values)}.")

    @property
    def width(self) -> int:
        return len(self.values)

    @cached_property
    def lookup(self) -> dict[str, int]:
        return {value: number for number, value in enumerate(self.values)}

    @cached_property
    def numbers(self) -> dict[float, int]:
        """The same by number, so that 1.0 is found as 1; nothing where two values are the same number."""
        found = [(parse_number(value), number) for number, value in enumerate(self.values)]
        known = {value: number for value, number in found if value is not None}
        return known if len(known) == sum(value is not None for value, _ in found) else {}

    def index_of(self, cell: str) -> int | None:
        """Which of them the cell holds, also as a number written in another way."""
        found = self.lookup.get(cell)
        number = parse_number(cell) if found is None else None
        return found if number is None else self.numbers.get(number)


Column: TypeAlias = Range | Values | Literal["ignore"]


@part
class Ranges:
    """What is publicly known of each column. `taken_from_data` is how a starter file says that it isn't."""

    columns: dict[str, Column]
    taken_from_data: Flag = False


def load_ranges(source: "str | Path | Mapping[str, Any] | Ranges", folder: Path | None = None) -> Ranges:
    """Ranges from a TOML file, from a table of columns, or as they are."""
    match source:
        case Ranges():
            return source
        case Mapping():
            tables = isinstance(source.get("columns"), Mapping) and set(source) <= {"columns", "taken_from_data"}
            return _parse_ranges(dict(source) if tables else {"columns": dict(source)}, "The ranges")
        case _:
            path = find_file(str(source), folder)
            try:
                return _parse_ranges(tomllib.loads(path.read_text(encoding="utf-8-sig")), str(path))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise InvalidInput(f"{path} is not TOML: {error}.") from None


def _parse_ranges(document: dict[str, Any], where: str) -> Ranges:
    columns = document.get("columns")
    if not isinstance(columns, Mapping):
        raise InvalidInput(f"{where} has no [columns] table.", fix="Write one: discreet data check --write-ranges")
    made: Ranges = from_plain(
        Ranges, {**document, "columns": {name: _parse_column(name, given, where) for name, given in columns.items()}}
    )
    return made


def _parse_column(name: str, given: Any, where: str) -> Any:
    kind: type[Range] | type[Values]
    match given:
        case Range() | Values() | "ignore":
            return given
        case {"min": _, "max": _, **more} if not more:
            kind = Range
        case {"values": _, **more} if not more:
            kind = Values
        case _:
            raise InvalidInput(
                f'{where}: column {name!r} must be {{ min = …, max = … }}, {{ values = […] }} or "ignore", '
                f"and got {given!r:.60}."
            )
    try:
        return from_plain(kind, dict(given))
    except InvalidInput as error:
        raise InvalidInput(f"{where}: column {name!r}: {error}") from None


def find_file(path: str, folder: Path | None) -> Path:
    """Where a file named in an experiment lies: in `folder`, or where the command runs."""
    places = [Path(path)] if folder is None else [folder / path, Path(path)]
    for place in places:
        if place.is_file():
            return place
    raise InvalidInput(f"There is no file {path}.", fix=f"Looked for {' and '.join(map(str, places))}.")


def parse_number(cell: str) -> float | None:
    """The finite number that a cell spells, or None. Python would also read 1_000, which is a typing error here."""
    if "_" in cell:
        return None
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
