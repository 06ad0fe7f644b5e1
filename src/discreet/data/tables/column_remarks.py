"""What the owner of a table should know about a column's cells before training: each with a remedy."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_COUNTED = 1_000_000  # distinct cells that are told apart, to bound memory
LEAST_REPEATS = 2  # mean number of rows of each name, from which a column may name persons
MOSTLY = 0.8  # the share of cells from which a column counts as one of dates, or of decimal commas
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ]\d{1,2}:\d{2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})( .*)?"
    rf"|(\d{{1,2}}[-/. ]+)?{MONTH}[-/. ]+(\d{{4}}|\d{{2}})|{MONTH} \d{{1,2}},? \d{{4}}",
    re.IGNORECASE,
)
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
DECIMAL_COMMA = re.compile(r"[-+]?\d{1,3}(\.\d{3})*,\d+|[-+]?\d+,\d+")
INFINITE = frozenset({"inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"})


@dataclass
class CellKinds:
    """How many cells of a column are dates, numbers with a decimal comma or infinite, and whether cells repeat.

    Attributes:
        cells: Number of cells that are not missing.
        comma_at: The row of the first number with a decimal comma.
        spaced: Number of texts of several words.
        distinct: Hashes of the distinct cells, up to a limit.
        first_day: The first of the dates. Empty if one is not written as YYYY-MM-DD.
        last_day: The last of the dates.
    """

    cells: int = 0
    dates: int = 0
    decimal_commas: int = 0
    comma_at: int = 0
    infinite: int = 0
    spaced: int = 0
    distinct: set[int] = field(default_factory=set)
    first_day: str = ""
    last_day: str = ""

    def count_cell(self, cell: str, line: int, *, is_number: bool) -> None:
        """Add a cell that is not missing."""
        self.cells += 1
        if len(self.distinct) < MOST_COUNTED:
            self.distinct.add(hash(cell))
        if is_number:
            return
        if DATE.fullmatch(cell):
            self.dates += 1
            day = cell[:10] if ISO_DATE.match(cell) else ""
            self.first_day = min(self.first_day, day) if self.dates > 1 else day
            self.last_day = max(self.last_day, day)
        if DECIMAL_COMMA.fullmatch(cell):
            self.decimal_commas += 1
            self.comma_at = self.comma_at or line
        self.infinite += cell.lower() in INFINITE
        self.spaced += " " in cell

    @property
    def are_dates(self) -> bool:
        """Whether the cells are dates."""
        return self.dates > MOSTLY * self.cells

    @property
    def have_decimal_commas(self) -> bool:
        """Whether the cells are numbers with a decimal comma."""
        return self.decimal_commas > MOSTLY * self.cells

    def is_identifier(self, *, whole: bool) -> bool:
        """Whether every cell differs: of single words or whole numbers. Measurements and free texts differ too."""
        return whole and not self.spaced and 10 < self.cells == len(self.distinct)

    @property
    def names_persons(self) -> bool:
        """Whether the cells are probably names of persons: single words, many of them, each in several rows."""
        repeats = self.cells >= LEAST_REPEATS * len(self.distinct)
        return repeats and not self.spaced and len(self.distinct) < MOST_COUNTED

    def remarks(self, name: str, row: str, *, whole: bool) -> Iterator[str]:
        """Yield a sentence for each thing to know about the column.

        Args:
            name: The column.
            row: What the number of a row counts: "line" or "row".
            whole: Whether its cells are whole numbers or text.
        """
        if self.are_dates:
            written = "" if self.first_day else "write them as YYYY-MM-DD, then "
            yield (
                f"Column {name!r} holds dates: {written}give it {{ first = DATE, last = DATE }} with public dates in "
                'the ranges, or set it to "ignore".'
            )
        elif self.have_decimal_commas:
            yield (
                f"Column {name!r} has numbers with a decimal comma, first in {row} {self.comma_at}: write them with a "
                'decimal point. As it stands the column is text, which --write-ranges sets to "ignore".'
            )
        elif self.is_identifier(whole=whole):
            yield (
                f'Column {name!r} has another value in every row, as an identifier has: set it to "ignore" in the '
                "ranges. If it names persons, and persons have several rows elsewhere, promise for a person."
            )
        if self.infinite:
            rows = "1 row" if self.infinite == 1 else f"{self.infinite:,} rows"
            yield f"Column {name!r} is infinite in {rows}: replace that by the end of its public range."
