"""Whether a table fits: its clients, columns and labels, and what stands in the way. For the data owner's eyes only."""

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from discreet.data.tables.ranges import Range, Ranges, Values, parse_number
from discreet.data.tables.table import Table, is_missing
from discreet.data.tables.table_encoding import Encoding, unreadable_cell_error
from discreet.errors import InvalidInput

MOST_VALUES = 50  # a column of text with more is no list of categories


@dataclass
class ColumnSurvey:
    """What was seen of one column. Distinct values are counted up to a limit, so that memory stays bounded."""

    name: str
    missing: int = 0
    missing_at: int = 0
    numbers: int = 0
    texts: int = 0
    low: float = 0.0
    high: float = 0.0
    seen: Counter[str] = field(default_factory=Counter)
    outside: int = 0  # of the public range; training moves such values to its end
    unreadable: int = 0
    first_problem: str = ""

    def count_cell(self, cell: str, line: int) -> None:
        if is_missing(cell):
            self.missing += 1
            self.missing_at = self.missing_at or line
            return
        number = parse_number(cell)
        if number is None:
            self.texts += 1
        else:
            self.low, self.high = (min(self.low, number), max(self.high, number)) if self.numbers else (number, number)
            self.numbers += 1
        if cell in self.seen or len(self.seen) <= MOST_VALUES:
            self.seen[cell] += 1

    def check_cell(self, known: Range | Values, cell: str) -> bool:
        """Whether the public range can hold the cell; counts what it doesn't cover."""
        if isinstance(known, Values):
            readable = known.index_of(cell) is not None
        else:
            number = parse_number(cell)
            readable = number is not None
            self.outside += number is not None and not known.min <= number <= known.max
        self.unreadable += not readable
        return readable

    @property
    def type(self) -> str:
        if not self.numbers and not self.texts:
            return "empty"
        if not self.texts:
            return "number"
        return "mixed" if self.numbers else "category" if self.distinct <= MOST_VALUES else "text"

    @property
    def distinct(self) -> int:
        return len(self.seen)

    @property
    def is_constant(self) -> bool:
        return self.distinct == 1 and not self.missing

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "type": self.type, "missing": self.missing}
        if self.type == "number":
            found |= {"min": self.low, "max": self.high}
        elif self.distinct <= MOST_VALUES:
            found["values"] = sorted(self.seen)
        return found | {"constant": self.is_constant, "outside": self.outside, "unreadable": self.unreadable}


@dataclass(frozen=True)
class Survey:
    """All that was seen, and the problems; none means that the data fits."""

    path: str
    sizes: dict[str, int]
    columns: tuple[ColumnSurvey, ...]
    label: ColumnSurvey
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        return not self.problems

    def facts(self) -> dict[str, Any]:
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
    """Read the whole table once; whatever is wrong is collected, not raised."""
    features = [(at, ColumnSurvey(name)) for at, name in table.features(client, label)]
    target, client_at = ColumnSurvey(label), table.columns.index(client)
    watched = [*features, (table.columns.index(label), target)]
    problems, known = _check_ranges(table, ranges, client=client, label=label)
    sizes: Counter[str] = Counter()
    nameless: list[int] = []
    try:
        for line, row in table.rows():
            if is_missing(row[client_at]):
                nameless.append(line)
            else:
                sizes[row[client_at]] += 1
            for at, column in watched:
                column.count_cell(row[at], line)
                held = known.get(column.name)
                if held and not column.check_cell(held, row[at]) and not column.first_problem:
                    column.first_problem = str(unreadable_cell_error(row[at], held, table, at, line))
    except InvalidInput as error:
        problems.append(str(error))  # a torn row: what follows can't be read
    if nameless:
        times = _count_rows(len(nameless))
        problems.append(f"Column {client!r} names no client in {times}, first in {table.row} {nameless[0]}.")
    problems += [] if sizes else [f"{table.path} has no rows with a client."]
    ignored = {name for name, column in ranges.columns.items() if column == "ignore"} if ranges else set()
    used = [column for _, column in watched if column.name not in ignored]
    problems += [each for column in used for each in _find_problems(column, known, table.row)]
    if not known and sizes and target.distinct < 2:
        problems.append(f"The label {label!r} has one value only: there is nothing to learn.")
    notes = [note for _, column in features if column.name not in ignored for note in _write_notes(column)]
    if ranges is None:
        notes.append("Training needs a file with publicly known ranges: --write-ranges FILE makes a start.")
    elif ranges.taken_from_data:
        notes.append(
            "The ranges say that they were taken from the data, so no guarantee covers what they reveal: training "
            "refuses them, unless it is told --accept-data-ranges."
        )
    return Survey(
        str(table.path), dict(sizes), tuple(each for _, each in features), target, tuple(problems), tuple(notes)
    )


def _check_ranges(
    table: Table, ranges: Ranges | None, *, client: str, label: str
) -> tuple[list[str], dict[str, Range | Values]]:
    if ranges is None:
        return [], {}
    problems = []
    try:
        Encoding.of(table, ranges, client=client, label=label)
    except InvalidInput as error:
        problems.append(str(error))
    return problems, {name: column for name, column in ranges.columns.items() if not isinstance(column, str)}


def _find_problems(column: ColumnSurvey, known: dict[str, Range | Values], row: str) -> list[str]:
    if column.name in known:
        more = f" ({column.unreadable} such cells in this column.)" if column.unreadable > 1 else ""
        return [column.first_problem + more] if column.unreadable else []
    found = []
    if column.missing:
        times = _count_rows(column.missing)
        found.append(f"Column {column.name!r} is missing in {times}, first in {row} {column.missing_at}.")
    if column.type == "mixed" and column.distinct > MOST_VALUES:
        found.append(f"Column {column.name!r} holds {column.numbers} numbers and {column.texts} texts.")
    return found


def _write_notes(column: ColumnSurvey) -> list[str]:
    if column.type == "text":
        return [f'Column {column.name!r} holds free text: "ignore" it in the ranges.']
    if column.is_constant:
        return [f"Column {column.name!r} never changes here: it teaches nothing unless other owners' data differs."]
    return []


def _count_rows(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"
