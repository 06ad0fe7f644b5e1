"""What a column of a table may hold, by public knowledge alone, and how its cells become inputs in [-1, 1]."""

import math
import re
import zlib
from collections.abc import Iterable
from datetime import date
from functools import cached_property
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from discreet.data.tables.table import Cells, as_texts
from discreet.errors import InvalidInput
from discreet.part import Count, Real, part

EPOCH = date(1970, 1, 1)  # dates are numbers of days since this one
DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ].*)?")  # with or without a time of day, which is not used
WORD = re.compile(r"\w+")

Reading: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]  # what cells mean, and which can't be read


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

    @property
    def cell_rule(self) -> str:
        """What a cell must be, for messages."""
        return "a number with a decimal point"

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale to [-1, 1]. Values outside the range are moved to its nearer end."""
        return (values.clip(self.min, self.max) - self.min) / (self.max - self.min) * 2 - 1

    def number_in(self, cell: str) -> float | None:
        """Return the number in a cell, or None."""
        return parse_number(cell)

    def read_cells(self, cells: Cells) -> Reading:
        """Return the scaled numbers of the cells."""
        return _scale_cells(self, cells)

    def as_inputs(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return one input for each number."""
        return numbers[:, None]


def _parse_day(value: Any) -> str:
    day = value if type(value) is date else _date_in(str(value))
    if day is None:
        raise ValueError(f"must be a date such as 2026-01-31, and got {value!r}")
    return day.isoformat()


@part
class DateRange:
    """A date between two public dates. It becomes one input in [-1, 1]: its number of days, scaled.

    Attributes:
        first: The first day, as 2020-01-01.
        last: The last day.
    """

    first: Annotated[str, BeforeValidator(_parse_day)]
    last: Annotated[str, BeforeValidator(_parse_day)]

    def __post_init__(self) -> None:
        if not self.first < self.last:
            raise InvalidInput(f"A range of dates needs first before last, and got {self.first} and {self.last}.")

    @property
    def min(self) -> float:
        """The first day, in days since 1970-01-01."""
        return count_days(date.fromisoformat(self.first))

    @property
    def max(self) -> float:
        """The last day, in days since 1970-01-01."""
        return count_days(date.fromisoformat(self.last))

    @property
    def width(self) -> int:
        """Number of inputs that the column becomes."""
        return 1

    @property
    def cell_rule(self) -> str:
        """What a cell must be, for messages."""
        return "a date as YYYY-MM-DD"

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale days to [-1, 1]. Dates outside the range are moved to its nearer end."""
        return Range(min=self.min, max=self.max).scale(values)

    def number_in(self, cell: str) -> float | None:
        """Return the number of days of a cell's date, or None."""
        day = _date_in(cell)
        return None if day is None else count_days(day)

    def read_cells(self, cells: Cells) -> Reading:
        """Return the scaled dates of the cells."""
        return _scale_cells(self, as_texts(cells))

    def as_inputs(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return one input for each date."""
        return numbers[:, None]


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

    @property
    def cell_rule(self) -> str:
        """What a cell must be, for messages."""
        listed = ", ".join(self.values[:8]) + (", …" if self.width > 8 else "")
        return f"one of the listed values ({listed})"

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

    def read_cells(self, cells: Cells) -> Reading:
        """Return the index of each cell's value. Equal cells are looked up once."""
        if isinstance(cells, np.ndarray):
            distinct, which = np.unique(cells, return_inverse=True)
            indices = np.array([self._known_index(cell) for cell in as_texts(distinct)])[which]
        else:
            known = {cell: self._known_index(cell) for cell in set(cells)}
            indices = np.array([known[cell] for cell in cells])
        return indices, indices < 0

    def as_inputs(self, indices: NDArray[Any]) -> NDArray[Any]:
        """Return one input for each value."""
        inputs: NDArray[Any] = np.eye(self.width, dtype=np.float32)[indices]
        return inputs

    def _known_index(self, cell: str) -> int:
        index = self.index_of(cell)
        return -1 if index is None else index


@part
class HashedText:
    """Free text. Its words are counted in a public number of buckets, and the counts are scaled to a norm of 1.

    The bucket of a word is the CRC-32 of its lower-case UTF-8 bytes, modulo the number of buckets. No vocabulary is
    fitted, so the encoding depends on nothing but the text itself. A text without words becomes zeros.

    Attributes:
        text_buckets: Number of buckets, which is the number of inputs.
    """

    text_buckets: Count

    @property
    def width(self) -> int:
        """Number of inputs that the column becomes."""
        return self.text_buckets

    @property
    def cell_rule(self) -> str:
        """What a cell must be, for messages."""
        return "text"

    def read_cells(self, cells: Cells) -> Reading:
        """Return the scaled counts of each cell's words. Every text can be read, an empty one too."""
        return hash_words(as_texts(cells), self.text_buckets), np.zeros(len(cells), dtype=np.bool_)

    def as_inputs(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Return the counts as they are."""
        return counts


InputColumn: TypeAlias = Range | Values | DateRange | HashedText


def hash_words(texts: Iterable[str], buckets: int) -> NDArray[np.float64]:
    """Return how often words of each text fall into each bucket, scaled to an L2 norm of 1 for each text with words.

    Example:
        >>> hash_words(["Pain, pain and fever", ""], 4).round(3).tolist()
        [[0.0, 0.707, 0.707, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    rows = [np.bincount([_bucket(word, buckets) for word in WORD.findall(text)], minlength=buckets) for text in texts]
    counts = np.array(rows, dtype=np.float64).reshape(-1, buckets)
    norms = np.sqrt(np.square(counts).sum(axis=1, keepdims=True))
    return counts / np.where(norms > 0, norms, 1)


def _bucket(word: str, buckets: int) -> int:
    return zlib.crc32(word.lower().encode()) % buckets


def count_days(day: date) -> float:
    """Return the number of days from 1970-01-01 to this one."""
    return float((day - EPOCH).days)


def parse_number(cell: str) -> float | None:
    """Return the finite number in a cell, or None. 1_000, which Python accepts, counts as a typing error."""
    if "_" in cell:
        return None
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date_in(cell: str) -> date | None:
    found = DATE.fullmatch(cell)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:  # such as a 30th of February
        return None


def _scale_cells(column: Range | DateRange, cells: Cells) -> Reading:
    numbers = cells if isinstance(cells, np.ndarray) else list(map(column.number_in, cells))
    values = np.asarray(numbers, dtype=np.float64)  # None becomes NaN
    return column.scale(values), ~np.isfinite(values)
