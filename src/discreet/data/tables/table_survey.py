"""Survey a table: its clients, columns, labels and problems. The result is for the data's owner only."""

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Any

from discreet.data.tables.column_kinds import InputColumn
from discreet.data.tables.column_remarks import MOST_COUNTED
from discreet.data.tables.column_survey import MOST_VALUES, ColumnSurvey
from discreet.data.tables.ranges import Ranges
from discreet.data.tables.survey_remarks import (
    count_rows,
    describe_rows,
    find_label_problems,
    find_problems,
    remark_on_column,
    remark_on_values,
)
from discreet.data.tables.table import Table, is_missing
from discreet.data.tables.table_encoding import Encoding, unreadable_cell_error
from discreet.errors import InvalidInput


@dataclass(frozen=True)
class Survey:
    """The result of surveying a table.

    Attributes:
        path: The file.
        sizes: The number of rows of each client.
        columns: The statistics of the feature columns.
        label: The statistics of the label.
        labels: How many examples have each label; a row without a client is no example.
        problems: What must be corrected before training. Empty if the data fits.
        remarks: What the owner should do something about, each with its remedy.
        notes: What else the owner should know.
    """

    path: str
    sizes: dict[str, int]
    columns: tuple[ColumnSurvey, ...]
    label: ColumnSurvey
    labels: dict[str, int]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_readable(self) -> bool:
        """Whether the table can be trained on."""
        return not self.problems

    @property
    def fits(self) -> bool:
        """Whether the table can be trained on as it is: no remark asks for a remedy."""
        return self.is_readable and not self.remarks

    def facts(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        sizes = sorted(self.sizes.values()) or [0]
        labels = dict(sorted(self.labels.items())) if self.label.distinct <= MOST_VALUES else None
        return {
            "file": self.path,
            "readable": self.is_readable,
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
            "remarks": list(self.remarks),
            "notes": [*self.remarks, *self.notes],
        }


def survey_table(
    table: Table, *, client: str, label: str, ranges: Ranges | None = None, writes_ranges: bool = False
) -> Survey:
    """Read the whole table once. Problems are collected, not raised.

    Args:
        table: The table.
        client: Name of the column that names the client.
        label: Name of the column to predict.
        ranges: Public ranges to check the table against.
        writes_ranges: Whether a file of ranges is written next, so that no note advises it.
    """
    features = [(index, ColumnSurvey(name)) for index, name in table.features(client, label)]
    target, client_column = ColumnSurvey(label), table.columns.index(client)
    label_column = table.columns.index(label)
    surveyed = [*features, (label_column, target)]
    problems, known = _check_ranges(table, ranges, client=client, label=label)
    sizes, labels = Counter[str](), Counter[str]()
    nameless: list[int] = []
    hashes, copies = set[int](), 0
    try:
        for line, row in table.rows():
            if is_missing(row[client_column]):
                nameless.append(line)
            else:
                sizes[row[client_column]] += 1
                if (value := row[label_column]) in labels or (len(labels) <= MOST_VALUES and not is_missing(value)):
                    labels[value] += 1
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
        times = count_rows(len(nameless))
        problems.append(f"Column {client!r} names no client in {times}, first in {table.row} {nameless[0]}.")
    problems += [] if sizes else [f"{table.path} has no rows with a client."]
    ignored = {name for name, column in ranges.columns.items() if column == "ignore"} if ranges else set()
    used = [column for _, column in surveyed if column.name not in ignored]
    problems += [
        problem for column in used for problem in find_problems(column, known, table.row, is_label=column is target)
    ]
    problems += [] if known else find_label_problems(target, table.row)
    if not known and sizes and target.distinct < 2:
        problems.append(f"The label {label!r} has one value only: there is nothing to learn.")
    remarked = [column for _, column in features if column.name not in ignored]
    remarks = [remark for column in remarked for remark in remark_on_column(column, known.get(column.name), table.row)]
    remarks += [remark for column in [*remarked, target] for remark in remark_on_values(column)]
    notes = [
        f"Column {column.name!r} is constant here: it is useless unless other owners have other values."
        for column in remarked
        if column.is_constant
    ]
    notes += describe_rows(sizes, copies)
    if ranges is None and not writes_ranges:
        notes.append("Training needs a file with public ranges: --write-ranges FILE writes a starter file.")
    elif ranges is not None and ranges.taken_from_data:
        notes.append(
            "The ranges say that they were taken from the data, so no guarantee covers what they reveal: training "
            "refuses them, unless it gets --accept-data-ranges."
        )
    columns = tuple(column for _, column in features)
    return Survey(
        str(table.path), dict(sizes), columns, target, dict(labels), tuple(problems), tuple(remarks), tuple(notes)
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
