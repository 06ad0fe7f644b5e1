"""Survey one column of a table: its type, its values, and the cells that its public range can't encode."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from discreet.data.tables.column_kinds import HashedText, InputColumn, Values, parse_number
from discreet.data.tables.column_remarks import CellKinds
from discreet.data.tables.table import is_missing

MOST_VALUES = 50  # a text column with more distinct values is not a category
MOST_YEARS = 130  # of a life: whole numbers from 0 or 1 to more than this, without a gap, are hardly ages
PERSONS = frozenset(  # words in the name of a column of persons
    [
        "patient",
        "person",
        "subject",
        "participant",
        "user",
        "customer",
        "member",
        "employee",
        "student",
        "visitor",
        "citizen",
        "resident",
    ]
)
IDENTIFIERS = frozenset(["id", "ids", "pid", "uid", "mrn"])  # the last word of the name of a column of identifiers
NUMBERS = frozenset(["nr", "no", "num", "number", "key", "code", "name"])  # or this, after a word for a person


@dataclass
class ColumnSurvey:
    """Statistics of one column. Distinct values are counted up to a limit, so that memory stays bounded.

    Attributes:
        missing: Number of missing cells.
        missing_at: The row of the first missing cell.
        numbers: Number of cells that are numbers.
        texts: Number of cells that are text.
        low: The smallest number.
        high: The largest number.
        seen: How often each distinct value occurs.
        kinds: How many cells are dates and the like.
        fractions: Number of cells that are numbers, and not whole ones.
        outside: Number of cells outside the public range. Training moves such values to the end of the range.
        unreadable: Number of cells that the public range can't encode.
        first_problem: The message about the first of them.
    """

    name: str
    missing: int = 0
    missing_at: int = 0
    numbers: int = 0
    texts: int = 0
    low: float = 0.0
    high: float = 0.0
    seen: Counter[str] = field(default_factory=Counter)
    kinds: CellKinds = field(default_factory=CellKinds)
    fractions: int = 0
    outside: int = 0
    unreadable: int = 0
    first_problem: str = ""

    def count_cell(self, cell: str, line: int) -> None:
        """Add a cell to the statistics."""
        if is_missing(cell):
            self.missing += 1
            self.missing_at = self.missing_at or line
            return
        number = parse_number(cell)
        self.kinds.count_cell(cell, line, is_number=number is not None)
        if number is None:
            self.texts += 1
        else:
            self.fractions += not number.is_integer()
            self.low, self.high = (min(self.low, number), max(self.high, number)) if self.numbers else (number, number)
            self.numbers += 1
        if cell in self.seen or len(self.seen) <= MOST_VALUES:
            self.seen[cell] += 1

    def check_cell(self, public_range: InputColumn, cell: str) -> bool:
        """Return whether the public range can encode the cell, and count the cells that it can't."""
        match public_range:
            case HashedText():
                return True
            case Values():
                is_readable = public_range.index_of(cell) is not None
            case _:
                number = public_range.number_in(cell)
                is_readable = number is not None
                self.outside += number is not None and not public_range.min <= number <= public_range.max
        self.unreadable += not is_readable
        return is_readable

    @property
    def type(self) -> str:
        """One of "number", "date", "category", "text", "mixed" and "empty"."""
        if not self.numbers and not self.texts:
            return "empty"
        if not self.texts:
            return "number"
        if self.kinds.are_dates and self.kinds.first_day:
            return "date"
        return "mixed" if self.numbers else "category" if self.distinct <= MOST_VALUES else "text"

    @property
    def names_persons(self) -> bool:
        """Whether the cells are probably names of persons, or their numbers: many of them, each in several rows."""
        if not self.kinds.names_persons or self.kinds.are_dates or self.distinct <= MOST_VALUES:
            return False
        if self.type != "number":
            return self.type == "text"
        values = len(self.kinds.distinct)
        counts_up = self.low in (0, 1) and self.high - self.low + 1 == values > MOST_YEARS
        return not self.fractions and (counts_up or _is_name_of_persons(self.name))

    @property
    def distinct(self) -> int:
        """Number of distinct values, counted up to one more than the limit."""
        return len(self.seen)

    @property
    def is_constant(self) -> bool:
        """Whether every cell has the same value."""
        return self.distinct == 1 and not self.missing

    def facts(self) -> dict[str, Any]:
        """Return the statistics as plain data, for JSON."""
        facts: dict[str, Any] = {"name": self.name, "type": self.type, "missing": self.missing}
        if self.type == "number":
            facts |= {"min": self.low, "max": self.high}
        elif self.type == "date":
            facts |= {"first": self.kinds.first_day, "last": self.kinds.last_day}
        elif self.distinct <= MOST_VALUES:
            facts["values"] = sorted(self.seen)
        return facts | {"constant": self.is_constant, "outside": self.outside, "unreadable": self.unreadable}


def _is_name_of_persons(column: str) -> bool:
    """Whether a column of this name probably names persons: patient, customer number, patientId; not patient_age."""
    words = re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower())
    persons = [word for word in words if word.removesuffix("s") in PERSONS]
    last = words[-1]
    return last in IDENTIFIERS or (bool(persons) and (last == persons[-1] or last in NUMBERS))
