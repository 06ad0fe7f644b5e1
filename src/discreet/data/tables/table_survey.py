"""Survey a table: its clients, columns, labels and problems. The result is for the data's owner only."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from discreet.data.tables.column_kinds import DateRange, HashedText, InputColumn, Values, parse_number
from discreet.data.tables.column_remarks import MOST_COUNTED, CellKinds
from discreet.data.tables.ranges import Ranges
from discreet.data.tables.table import Table, is_missing
from discreet.data.tables.table_encoding import Encoding, unreadable_cell_error
from discreet.errors import InvalidInput

MOST_VALUES = 50  # a text column with more distinct values is not a category


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
        self.kinds.count_cell(cell, is_number=number is not None)
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


@dataclass(frozen=True)
class Survey:
    """The result of surveying a table.

    Attributes:
        path: The file.
        sizes: The number of rows of each client.
        columns: The statistics of the feature columns.
        label: The statistics of the label.
        problems: What must be corrected before training. Empty if the data fits.
        notes: What the owner should know.
    """

    path: str
    sizes: dict[str, int]
    columns: tuple[ColumnSurvey, ...]
    label: ColumnSurvey
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the table can be trained on."""
        return not self.problems

    def facts(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        sizes = sorted(self.sizes.values()) or [0]
        labels = dict(sorted(self.label.seen.items())) if self.label.distinct <= MOST_VALUES else None
        return {
            "file": self.path,
            "fits": self.fits,
            "examples": sum(sizes),
            "clients": {
                "count": len(self.sizes),
                "smallest": sizes[0],
                "median": median(sizes),
                "largest": sizes[-1],
            },
            "columns": [column.facts() for column in self.columns],
            "label": {**self.label.facts(), "counts": labels},
            "problems": list(self.problems),
            "notes": list(self.notes),
        }


def survey_table(table: Table, *, client: str, label: str, ranges: Ranges | None = None) -> Survey:
    """Read the whole table once. Problems are collected, not raised."""
    features = [(index, ColumnSurvey(name)) for index, name in table.features(client, label)]
    target, client_column = ColumnSurvey(label), table.columns.index(client)
    surveyed = [*features, (table.columns.index(label), target)]
    problems, known = _check_ranges(table, ranges, client=client, label=label)
    sizes: Counter[str] = Counter()
    nameless: list[int] = []
    hashes, copies = set[int](), 0
    try:
        for line, row in table.rows():
            if is_missing(row[client_column]):
                nameless.append(line)
            else:
                sizes[row[client_column]] += 1
            if len(hashes) < MOST_COUNTED:
                copies += hash(row) in hashes
                hashes.add(hash(row))
            for index, column in surveyed:
                cell, public_range = row[index], known.get(column.name)
                column.count_cell(cell, line)
                if public_range and not column.check_cell(public_range, cell) and not column.first_problem:
                    column.first_problem = str(unreadable_cell_error(cell, public_range, table, index, line))
    except InvalidInput as error:
        problems.append(str(error))  # a malformed row: the rows after it can't be read
    if nameless:
        times = _count_rows(len(nameless))
        problems.append(f"Column {client!r} names no client in {times}, first in {table.row} {nameless[0]}.")
    problems += [] if sizes else [f"{table.path} has no rows with a client."]
    ignored = {name for name, column in ranges.columns.items() if column == "ignore"} if ranges else set()
    used = [column for _, column in surveyed if column.name not in ignored]
    problems += [problem for column in used for problem in _find_problems(column, known, table.row)]
    if not known and sizes and target.distinct < 2:
        problems.append(f"The label {label!r} has one value only: there is nothing to learn.")
    remarked = [column for _, column in features if column.name not in ignored]
    notes = [note for column in remarked for note in _write_notes(column, known.get(column.name))]
    notes += _describe_rows(sizes, copies)
    if ranges is None:
        notes.append("Training needs a file with public ranges: --write-ranges FILE writes a starter file.")
    elif ranges.taken_from_data:
        notes.append(
            "The ranges say that they were taken from the data, so no guarantee covers what they reveal: training "
            "refuses them, unless it gets --accept-data-ranges."
        )
    return Survey(
        str(table.path), dict(sizes), tuple(column for _, column in features), target, tuple(problems), tuple(notes)
    )


def _check_ranges(
    table: Table, ranges: Ranges | None, *, client: str, label: str
) -> tuple[list[str], dict[str, InputColumn]]:
    """Return the problems of the ranges themselves, and the range of each column that is used."""
    if ranges is None:
        return [], {}
    problems = []
    try:
        Encoding.from_ranges(table, ranges, client=client, label=label)
    except InvalidInput as error:
        problems.append(str(error))
    return problems, {name: column for name, column in ranges.columns.items() if not isinstance(column, str)}


def _find_problems(column: ColumnSurvey, known: dict[str, InputColumn], row: str) -> list[str]:
    """Describe what is wrong with a column."""
    if column.name in known:
        more = f" ({column.unreadable} such cells in this column.)" if column.unreadable > 1 else ""
        return [column.first_problem + more] if column.unreadable else []
    problems = []
    if column.missing:
        times = _count_rows(column.missing)
        problems.append(f"Column {column.name!r} is missing in {times}, first in {row} {column.missing_at}.")
    if column.type == "mixed" and column.distinct > MOST_VALUES:
        problems.append(f"Column {column.name!r} has {column.numbers} numbers and {column.texts} texts.")
    return problems


def _write_notes(column: ColumnSurvey, public_range: InputColumn | None) -> list[str]:
    """Describe what the owner should know about a column, unless its range says what to do."""
    if isinstance(public_range, DateRange | HashedText):
        return []
    remarks = list(column.kinds.remarks(column.name, whole=not column.fractions))
    if remarks:
        return remarks
    if column.type == "text":
        return [
            f"Column {column.name!r} is free text: {{ text_buckets = 64 }} in the ranges counts its words in 64 "
            'inputs; or set it to "ignore".'
        ]
    if column.is_constant:
        return [f"Column {column.name!r} is constant here: it is useless unless other owners have other values."]
    return []


def _describe_rows(sizes: Mapping[str, int], copies: int) -> Iterator[str]:
    """Yield what the owner should know about clients and rows."""
    if single := sum(size == 1 for size in sizes.values()):
        clients = "1 client has" if single == 1 else f"{single:,} clients have"
        yield f"{clients} one row only: join them with others, or leave them out; noise hides what one row teaches."
    if copies:
        rows = "1 row is a copy" if copies == 1 else f"{copies:,} rows are copies"
        yield f"{rows} of another row: drop them if they are mistakes; a promise for one example does not cover both."


def _count_rows(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"
