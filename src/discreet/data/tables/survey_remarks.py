"""What a survey says about columns and rows: problems that stop training, and remarks with their remedies."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from discreet.data.tables.column_kinds import DateRange, HashedText, InputColumn, Range
from discreet.data.tables.column_survey import MOST_VALUES, ColumnSurvey
from discreet.data.tables.table_encoding import MISSING_REMEDY

MANY_OUTSIDE = 0.05  # the share of cells outside the public range, from which there is a remark


def find_problems(
    column: ColumnSurvey, known: dict[str, InputColumn], row: str, *, is_label: bool = False
) -> list[str]:
    """Describe what is wrong with a column, and the remedy for missing cells. A label can't be ignored."""
    if column.name in known:
        more = f" ({column.unreadable} such cells in this column.)" if column.unreadable > 1 else ""
        return [column.first_problem + more] if column.unreadable else []
    problems = []
    if column.missing:
        times = count_rows(column.missing)
        where = f"Column {column.name!r} is missing in {times}, first in {row} {column.missing_at}."
        problems.append(f"{where} {'Drop these rows' if is_label else MISSING_REMEDY}.")
    if column.type == "mixed" and column.distinct > MOST_VALUES:
        problem = f"Column {column.name!r} has {column.numbers} numbers and {column.texts} texts"
        problems.append(f"{problem}{_name_commas(column, row)}.")
    return problems


def _name_commas(column: ColumnSurvey, row: str) -> str:
    """Name the numbers with a decimal comma among other numbers, and the remedy. Empty if there are none."""
    count, at = column.kinds.decimal_commas, column.kinds.comma_at
    if not count or not column.numbers:
        return ""
    numbers = "1 is a number" if count == 1 else f"{count} are numbers"
    return f": {numbers} with a decimal comma, first in {row} {at}; write a decimal point instead"


def remark_on_column(column: ColumnSurvey, public_range: InputColumn | None, row: str) -> Iterator[str]:
    """Yield what the owner should do about a column, unless its range does it already."""
    cells = column.kinds.cells
    if isinstance(public_range, Range | DateRange) and column.outside > MANY_OUTSIDE * cells:
        yield (
            f"{column.outside:,} of {cells:,} cells of column {column.name!r} lie outside its range; training moves "
            "them to its ends: check the unit of measurement, or give a wider range that is publicly known."
        )
    if isinstance(public_range, DateRange | HashedText):
        return
    remarks = list(column.kinds.remarks(column.name, row, whole=not column.fractions))
    yield from remarks
    is_category = column.type == "mixed" and column.distinct <= MOST_VALUES  # else it is a problem
    if not remarks and is_category and (commas := _name_commas(column, row)):
        yield f"Column {column.name!r} has {column.numbers} numbers and {column.texts} texts{commas}."
    buckets = "{ text_buckets = 64 } in the ranges counts its words in 64 inputs"
    if not remarks and column.names_persons:
        values = "whole numbers" if column.type == "number" else "values of one word"
        other = "give it its public { min, max }" if column.type == "number" else buckets
        yield (
            f"Column {column.name!r} probably names persons: it has {len(column.kinds.distinct):,} {values}, "
            f'in several rows each. If so, leave it out of the inputs ("ignore" in the ranges), and promise for a '
            f"person: discreet init --unit person:{column.name}:ROWS, where ROWS is the most rows that a person may "
            f"have. If not, {other}."
        )
    elif not remarks and column.type == "text":
        yield f'Column {column.name!r} is free text: {buckets}; or set it to "ignore".'


def find_label_problems(label: ColumnSurvey, row: str) -> Iterator[str]:
    """Yield that a label without a range has decimal commas: as text it can't be predicted as a number."""
    if label.kinds.have_decimal_commas:
        yield (
            f"The label {label.name!r} has numbers with a decimal comma, first in {row} {label.kinds.comma_at}: write "
            "them with a decimal point. As it stands the label is text, for which --write-ranges knows no range."
        )


def remark_on_values(column: ColumnSurvey) -> Iterator[str]:
    """Yield a remark on categories or labels that differ only in case or blanks."""
    if column.type != "category":
        return
    spellings = defaultdict[str, list[str]](list)
    for value in sorted(column.seen):
        spellings["".join(value.casefold().split())].append(value)
    for alike in spellings.values():
        if len(alike) > 1:
            yield (
                f"Column {column.name!r} has {' and '.join(map(repr, alike))}, which differ only in case or blanks and "
                "count as different values: write them alike."
            )


def describe_rows(sizes: Mapping[str, int], copies: int) -> Iterator[str]:
    """Yield what the owner should know about clients and rows."""
    if single := sum(size == 1 for size in sizes.values()):
        clients = "1 client has" if single == 1 else f"{single:,} clients have"
        yield f"{clients} one row only: join them with others, or leave them out; noise hides what one row teaches."
    if copies:
        rows = "1 row is a copy" if copies == 1 else f"{copies:,} rows are copies"
        yield f"{rows} of another row: drop them if they are mistakes; a promise for one example does not cover both."


def count_rows(rows: int) -> str:
    """Write a number of rows."""
    return "1 row" if rows == 1 else f"{rows} rows"
