"""Public ranges of a table's columns. Scaling by them reveals nothing about the data, because nothing is fitted."""

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
    """A number between two public bounds. It becomes one input in [-1, 1]."""

    min: Real
    max: Real

    def __post_init__(self) -> None:
        if not self.min < self.max:
            raise InvalidInput(f"A range needs min below max, and got min = {self.min:g} and max = {self.max:g}.")

    @property
    def width(self) -> int:
        """Number of inputs that the column becomes."""
        return 1

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale to [-1, 1]. Values outside the range are moved to its nearer end."""
        return (values.clip(self.min, self.max) - self.min) / (self.max - self.min) * 2 - 1


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    raise ValueError(f"must be text or a number, and got {value!r}")


@part
class Values:
    """One of the listed values. It becomes one input per value, of which one is 1 and the others are 0."""

    values: tuple[Annotated[str, BeforeValidator(_as_text)], ...]

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) != len(self.values):
            raise InvalidInput(f"Values must be listed, each once, and got {list(self.values)}.")

    @property
    def width(self) -> int:
        """Number of inputs that the column becomes."""
        return len(self.values)

    @cached_property
    def lookup(self) -> dict[str, int]:
        """The index of each value."""
        return {value: number for number, value in enumerate(self.values)}

    @cached_property
    def numbers(self) -> dict[float, int]:
        """The index of each value that is a number, so that 1.0 matches 1. Empty if two values are equal numbers."""
        parsed = [(parse_number(value), index) for index, value in enumerate(self.values)]
        indices = {number: index for number, index in parsed if number is not None}
        return indices if len(indices) == sum(number is not None for number, _ in parsed) else {}

    def index_of(self, cell: str) -> int | None:
        """Return the index of the cell's value, or None. Numbers may be written in different ways."""
        index = self.lookup.get(cell)
        number = parse_number(cell) if index is None else None
        return index if number is None else self.numbers.get(number)


Column: TypeAlias = Range | Values | Literal["ignore"]


@part
class Ranges:
    """What is publicly known about each column.

    Attributes:
        columns: The range or values of each column, or "ignore" to leave the column out.
        taken_from_data: Whether the ranges were copied from the data, as in a starter file, and are not public.
    """

    columns: dict[str, Column]
    taken_from_data: Flag = False


def load_ranges(source: "str | Path | Mapping[str, Any] | Ranges", folder: Path | None = None) -> Ranges:
    """Load ranges from a TOML file or from a mapping of columns. `Ranges` are returned unchanged."""
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
                raise InvalidInput(f"{path} is not valid TOML: {error}.") from None


def _parse_ranges(document: dict[str, Any], where: str) -> Ranges:
    columns = document.get("columns")
    if not isinstance(columns, Mapping):
        raise InvalidInput(f"{where} has no [columns] table.", fix="Write one: discreet data check --write-ranges")
    ranges: Ranges = from_plain(
        Ranges, {**document, "columns": {name: _parse_column(name, column, where) for name, column in columns.items()}}
    )
    return ranges


def _parse_column(name: str, column: Any, where: str) -> Any:
    kind: type[Range] | type[Values]
    match column:
        case Range() | Values() | "ignore":
            return column
        case {"min": _, "max": _, **more} if not more:
            kind = Range
        case {"values": _, **more} if not more:
            kind = Values
        case _:
            raise InvalidInput(
                f'{where}: column {name!r} must be {{ min = …, max = … }}, {{ values = […] }} or "ignore", '
                f"and got {column!r:.60}."
            )
    try:
        return from_plain(kind, dict(column))
    except InvalidInput as error:
        raise InvalidInput(f"{where}: column {name!r}: {error}") from None


def find_file(path: str, folder: Path | None) -> Path:
    """Find a file that an experiment names: in `folder`, or relative to the current directory."""
    candidates = [Path(path)] if folder is None else [folder / path, Path(path)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise InvalidInput(f"There is no file {path}.", fix=f"Looked for {' and '.join(map(str, candidates))}.")


def parse_number(cell: str) -> float | None:
    """Return the finite number in a cell, or None. 1_000, which Python accepts, counts as a typing error."""
    if "_" in cell:
        return None
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
