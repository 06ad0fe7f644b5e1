"""Encode a table as numbers by the public ranges of its columns, with the rows of each client together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.algorithms.standardisation import Standardisation
from discreet.data.tables.column_kinds import DateRange, InputColumn, Range, Values
from discreet.data.tables.person_rows import PersonRows
from discreet.data.tables.ranges import Ranges
from discreet.data.tables.table import Chunk, Table, as_texts, is_missing
from discreet.errors import InvalidInput, nearest_names
from discreet.lazy_torch import Tensor, torch
from discreet.privacy.release import Person

MISSING_REMEDY = 'Fill missing cells with a public constant, drop their rows, or set the column to "ignore"'


@dataclass(frozen=True)
class Encoding:
    """Which columns are the client, the label, the features and the person, and how they are encoded.

    Attributes:
        client_column: The index of the column that names the client.
        label_column: The index of the label.
        label: The range of a number to predict, or the values of a class.
        features: The index and the range or values of each column that becomes inputs.
        names: The names of these columns.
        person_column: The index of the column that names the person, if the privacy unit is a person.
    """

    client_column: int
    label_column: int
    label: Range | Values
    features: tuple[tuple[int, InputColumn], ...]
    names: tuple[str, ...]
    person_column: int | None = None

    @classmethod
    def from_ranges(
        cls, table: Table, ranges: Ranges, *, client: str, label: str, person: str | None = None
    ) -> Encoding:
        """Match the ranges with the columns of a table.

        Args:
            client: The name of the client column.
            label: The name of the label column.
            person: The name of the person column, if the privacy unit is a person.

        Raises:
            InvalidInput: A column is missing, has no range, or is used for two purposes.
        """
        known = ranges.columns
        person_column = None if person is None else _find_person_column(table, ranges, person, label)
        others = [(index, name) for index, name in table.features(client, label) if index != person_column]
        if stray := [name for name in known if name not in table.columns]:
            raise InvalidInput(
                f"The ranges name column {stray[0]!r}, which {table.path} doesn't have.",
                fix=f"Its columns: {nearest_names(table.columns, stray[0])}.",
            )
        if unknown := [name for _, name in others if name not in known]:
            raise InvalidInput(
                f"Column {unknown[0]!r} has no public range ({len(unknown)} such).",
                fix='Give it { min = …, max = … }, { values = […] } or another public kind, or "ignore".',
            )
        columns = ((index, known[name]) for index, name in others)
        features = tuple((index, column) for index, column in columns if not isinstance(column, str))  # "ignore"
        if not features:
            raise InvalidInput(f"All columns of {table.path} but client and label are ignored: there are no inputs.")
        target = known.get(label)
        if not isinstance(target, Range | Values) or (isinstance(target, Values) and target.width < 2):
            raise InvalidInput(
                f"The label {label!r} needs a public range too.",
                fix="Give it { values = […] } with at least two classes, or { min = …, max = … } for a number.",
            )
        names = tuple(table.columns[index] for index, _ in features)
        return cls(table.columns.index(client), table.columns.index(label), target, features, names, person_column)

    @property
    def named_features(self) -> Iterator[tuple[str, InputColumn]]:
        """The name and the range or values of each column that becomes inputs."""
        return zip(self.names, (column for _, column in self.features), strict=True)

    @property
    def standardisation(self) -> Standardisation | None:
        """Which inputs are numbers, and whether the label is one. None if there are no numbers."""
        starts = [0, *accumulate(column.width for _, column in self.features)]
        pairs = zip(starts, (column for _, column in self.features), strict=False)
        numeric = tuple(start for start, column in pairs if isinstance(column, Range | DateRange))
        wanted = Standardisation(inputs=starts[-1], numeric=numeric, target=isinstance(self.label, Range))
        return wanted if wanted.columns else None


def _find_person_column(table: Table, ranges: Ranges, person: str, label: str) -> int:
    """Return the index of the column that names persons, which must not be an input."""
    index = table.index(person, "person")
    if person == label:
        raise InvalidInput(f"Column {person!r} can't be both the label and the person.", fix="Name two columns.")
    if ranges.columns.get(person, "ignore") != "ignore":
        raise InvalidInput(
            f"Column {person!r} names persons, and the ranges make it an input.",
            fix='Set it to "ignore" in the ranges, or leave it out there.',
        )
    return index


class EncodedTable(NamedTuple):
    """A table as numbers: clients are in the order of their names, and rows in the order of the clients.

    Attributes:
        names: The names of the clients.
        sizes: The number of rows of each client.
        left_out: Number of rows that were left out because a person has more than may be used. Nothing else in this
            record depends on those rows.
        persons: The person of each row, if the privacy unit is a person.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    inputs: NDArray[np.float32]
    targets: NDArray[Any]
    left_out: int = 0
    persons: tuple[str, ...] | None = None

    @property
    def clients(self) -> NDArray[np.int64]:
        """The number of each row's client."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Return inputs and targets for training."""
        return torch.from_numpy(self.inputs), torch.from_numpy(self.targets)


def encode_table(table: Table, encoding: Encoding, person: Person | None = None) -> EncodedTable:
    """Read and encode the whole table.

    Args:
        person: How many rows of each person are used, and in how many clients. None uses all rows.

    Raises:
        InvalidInput: A cell is missing or outside the listed values, a client has no rows, or a person is in more
            clients than was declared.
    """
    clients: dict[str, int] = {}
    owners, inputs, targets, used = [], [], [], []
    persons: list[str] = []
    person_rows = None if person is None else PersonRows(person)
    for chunk in table.chunks():
        names = read_names(table, chunk, encoding.client_column, "client")
        owners.append(np.array([clients.setdefault(name, len(clients)) for name in names]))
        inputs.append(np.hstack([encode_inputs(table, chunk, index, column) for index, column in encoding.features]))
        targets.append(encode_targets(table, chunk, encoding.label_column, encoding.label))
        named = _read_persons(table, chunk, encoding)
        persons += named
        used.append(_select_rows(named, names, person_rows))
    if not owners:
        raise InvalidInput(f"{table.path} names its columns and has no rows.")
    sorted_names = sorted(clients)
    rank = np.empty(len(clients), dtype=np.int64)
    rank[[clients[name] for name in sorted_names]] = np.arange(len(clients))
    is_used = np.concatenate(used)
    keep = np.flatnonzero(is_used)
    ranks = rank[np.concatenate(owners)[keep]]
    order = keep[ranks.argsort(kind="stable")]
    sizes = tuple(np.bincount(ranks, minlength=len(clients)).tolist())
    if 0 in sizes:
        raise InvalidInput(
            f"The client {sorted_names[sizes.index(0)]!r} has no row left: all its rows are of persons whose first row "
            "is in another client.",
            fix="Take these rows out, or state in how many clients a person may have rows (clients_at_most).",
        )
    return EncodedTable(
        tuple(sorted_names),
        sizes,
        np.concatenate(inputs)[order],
        np.concatenate(targets)[order],
        len(is_used) - len(keep),
        tuple(persons[row] for row in order) if persons else None,
    )


def encode_inputs(table: Table, chunk: Chunk, index: int, column: InputColumn) -> NDArray[np.float32]:
    """Encode a column as the inputs that it becomes."""
    return column.as_inputs(_read_column(table, chunk, index, column)).astype(np.float32, copy=False)


def encode_targets(table: Table, chunk: Chunk, index: int, column: Range | Values) -> NDArray[Any]:
    """Encode the label: numbers in [-1, 1], or indices of listed values."""
    encoded = _read_column(table, chunk, index, column)
    return encoded.astype(np.int64 if isinstance(column, Values) else np.float32)


def _read_column(table: Table, chunk: Chunk, index: int, column: InputColumn) -> NDArray[Any]:
    """Return what a column's cells mean: numbers in [-1, 1], or indices of listed values."""
    cells = chunk.cells(index)
    meanings, is_unreadable = column.read_cells(cells)
    if is_unreadable.any():
        first = int(is_unreadable.argmax())
        raise unreadable_cell_error(str(cells[first]), column, table, index, chunk.rows[first])
    return meanings


def _read_persons(table: Table, chunk: Chunk, encoding: Encoding) -> Sequence[str]:
    """Return the person of each row of the chunk; nothing if the privacy unit is not a person."""
    return () if encoding.person_column is None else read_names(table, chunk, encoding.person_column, "person")


def _select_rows(persons: Sequence[str], clients: Sequence[str], person_rows: PersonRows | None) -> NDArray[np.bool_]:
    """Return which rows are used: all, or those that the bound on each person allows."""
    if person_rows is None:
        return np.ones(len(clients), dtype=np.bool_)
    return np.array([person_rows.uses(*row) for row in zip(persons, clients, strict=True)], dtype=np.bool_)


def read_names(table: Table, chunk: Chunk, index: int, what: str) -> Sequence[str]:
    """Return the cells of a column that must name a client or a person in every row."""
    names = as_texts(chunk.cells(index))
    for row, name in zip(chunk.rows, names, strict=True):
        if is_missing(name):
            got = repr(name) if name else "nothing"
            raise InvalidInput(
                f"{table.row.capitalize()} {row}, column {table.columns[index]!r} must name a {what}, and got {got}.",
                fix=f"Name the {what}, or drop the row.",
            )
    return names


def unreadable_cell_error(cell: str, column: InputColumn, table: Table, index: int, row: int) -> InvalidInput:
    """Return the error about a cell that is missing or does not fit the range of its column."""
    where = f"{table.row.capitalize()} {row}, column {table.columns[index]!r}"
    if is_missing(cell):
        return InvalidInput(
            f"{where}: the value is missing.",
            fix=f"{MISSING_REMEDY}.",
        )
    return InvalidInput(
        f"{where} must be {column.cell_rule}, and got {cell!r:.40}.", fix="Correct the cell, or the column's range."
    )
