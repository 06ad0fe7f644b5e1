"""How a table becomes numbers: each column by what is publicly known of it, the rows client after client."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from discreet.data.tables.person_rows import PersonRows
from discreet.data.tables.ranges import Column, Range, Ranges, Values, parse_number
from discreet.data.tables.table import Cells, Chunk, Table, as_texts, is_missing
from discreet.errors import InvalidInput


@dataclass(frozen=True)
class Encoding:
    """Where client, label, features and the names of persons lie, and what is publicly known of them."""

    client_at: int
    label_at: int
    label: Range | Values
    features: tuple[tuple[int, Range | Values], ...]
    person_at: int | None = None

    @classmethod
    def of(cls, table: Table, ranges: Ranges, *, client: str, label: str, person: str | None = None) -> "Encoding":
        known = ranges.columns
        person_at = None if person is None else _find_person_column(table, ranges, person, label)
        others = [(at, name) for at, name in table.features(client, label) if at != person_at]
        if stray := [name for name in known if name not in table.columns]:
            raise InvalidInput(
                f"The ranges name column {stray[0]!r}, which {table.path} doesn't have.",
                fix=f"Its columns: {', '.join(table.columns)}.",
            )
        if unknown := [name for _, name in others if name not in known]:
            raise InvalidInput(
                f"Column {unknown[0]!r} has no public range ({len(unknown)} such).",
                fix='Give it { min = …, max = … } or { values = […] } from public knowledge, or "ignore".',
            )
        features = tuple((at, _require_range(known[name])) for at, name in others if known[name] != "ignore")
        if not features:
            raise InvalidInput(f"All columns of {table.path} but client and label are ignored: nothing to learn from.")
        target = known.get(label)
        if not isinstance(target, Range | Values) or (isinstance(target, Values) and target.width < 2):
            raise InvalidInput(
                f"The label {label!r} needs a public range too.",
                fix="Give it { values = […] } with at least two classes, or { min = …, max = … } for a number.",
            )
        return cls(table.columns.index(client), table.columns.index(label), target, features, person_at)


def _find_person_column(table: Table, ranges: Ranges, person: str, label: str) -> int:
    """Where persons are named: in a column of the table that is never an input."""
    at = table.index(person, "person")
    if person == label:
        raise InvalidInput(f"Column {person!r} can't be both the label and the person.", fix="Name two columns.")
    if ranges.columns.get(person, "ignore") != "ignore":
        raise InvalidInput(
            f"Column {person!r} names persons, and the ranges make it an input.",
            fix='Set it to "ignore" in the ranges, or leave it out there.',
        )
    return at


class EncodedTable(NamedTuple):
    """The clients in the order of their names, how many rows each has, and the rows, one client's after the other's.

    `left_out` counts the rows of persons who have more than may be used; no other field holds anything of them.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    inputs: Tensor
    targets: Tensor
    left_out: int = 0


def encode_table(table: Table, encoding: Encoding, most: int | None = None) -> EncodedTable:
    """The whole table as numbers; with `most`, only so many rows of each person, all in one client."""
    clients: dict[str, int] = {}
    owners, inputs, targets, used = [], [], [], []
    chosen = None if most is None else PersonRows(most)
    for chunk in table.chunks():
        own = _read_names(table, chunk, encoding.client_at, "client")
        owners.append(np.array([clients.setdefault(name, len(clients)) for name in own]))
        inputs.append(np.hstack([_encode_inputs(table, chunk, at, column) for at, column in encoding.features]))
        targets.append(_encode_column(table, chunk, encoding.label_at, encoding.label))
        used.append(_select_rows(table, chunk, encoding, own, chosen))
    if not owners:
        raise InvalidInput(f"{table.path} names its columns and has no rows.")
    names = sorted(clients)
    rank = np.empty(len(names), dtype=np.int64)
    rank[[clients[name] for name in names]] = np.arange(len(names))
    is_used = np.concatenate(used)
    keep = np.flatnonzero(is_used)
    ranks = rank[np.concatenate(owners)[keep]]
    order = keep[ranks.argsort(kind="stable")]
    sizes = tuple(np.bincount(ranks, minlength=len(names)).tolist())
    if 0 in sizes:
        raise InvalidInput(
            f"The client {names[sizes.index(0)]!r} has no row left: all its rows are of persons whose first row is in "
            "another client.",
            fix="Take these rows out of the table.",
        )
    target_type = torch.int64 if isinstance(encoding.label, Values) else torch.float32
    return EncodedTable(
        tuple(names),
        sizes,
        torch.from_numpy(np.concatenate(inputs)[order]),
        torch.from_numpy(np.concatenate(targets)[order]).to(target_type),
        len(is_used) - len(keep),
    )


def _encode_inputs(table: Table, chunk: Chunk, at: int, column: Range | Values) -> NDArray[np.float32]:
    """One input for a number, one a value for listed values."""
    encoded = _encode_column(table, chunk, at, column)
    single = encoded[:, None] if isinstance(column, Range) else np.eye(column.width, dtype=np.float32)[encoded]
    return single.astype(np.float32, copy=False)


def _encode_column(table: Table, chunk: Chunk, at: int, column: Range | Values) -> NDArray[Any]:
    """A column's cells as numbers on [-1, 1], or as numbers of listed values."""
    cells = chunk.cells(at)
    found, bad = _encode_numbers(cells, column) if isinstance(column, Range) else _encode_values(cells, column)
    if bad.any():
        first = int(bad.argmax())
        raise unreadable_cell_error(str(cells[first]), column, table, at, chunk.rows[first])
    return found


def _encode_numbers(cells: Cells, column: Range) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The cells' numbers, scaled, and which cells have none."""
    numbers = cells if isinstance(cells, np.ndarray) else list(map(parse_number, cells))
    found = np.asarray(numbers, dtype=np.float64)  # None becomes NaN
    return column.scale(found), ~np.isfinite(found)


def _encode_values(cells: Cells, column: Values) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Which of the listed values each cell holds, and which cells hold none; each distinct cell is looked up once."""
    if isinstance(cells, np.ndarray):
        distinct, which = np.unique(cells, return_inverse=True)
        found = np.array([_value_index(cell, column) for cell in as_texts(distinct)])[which]
    else:
        known = {cell: _value_index(cell, column) for cell in set(cells)}
        found = np.array([known[cell] for cell in cells])
    return found, found < 0


def _value_index(cell: str, column: Values) -> int:
    found = column.index_of(cell)
    return -1 if found is None else found


def _select_rows(
    table: Table, chunk: Chunk, encoding: Encoding, clients: Sequence[str], chosen: PersonRows | None
) -> NDArray[np.bool_]:
    """Which rows of the chunk are used: all, or those that the bound on each person leaves."""
    if chosen is None or encoding.person_at is None:
        return np.ones(len(clients), dtype=np.bool_)
    persons = _read_names(table, chunk, encoding.person_at, "person")
    return np.array([chosen.uses(*row) for row in zip(persons, clients, strict=True)], dtype=np.bool_)


def _read_names(table: Table, chunk: Chunk, at: int, what: str) -> Sequence[str]:
    """The cells of a column that must name a client, or a person, in every row."""
    names = as_texts(chunk.cells(at))
    for row, name in zip(chunk.rows, names, strict=True):
        if is_missing(name):
            got = repr(name) if name else "nothing"
            raise InvalidInput(
                f"{table.row.capitalize()} {row}, column {table.columns[at]!r} must name a {what}, and got {got}.",
                fix=f"Name the {what}, or drop the row.",
            )
    return names


def unreadable_cell_error(cell: str, column: Range | Values, table: Table, at: int, row: int) -> InvalidInput:
    """What is wrong with a cell that its column can't hold."""
    where = f"{table.row.capitalize()} {row}, column {table.columns[at]!r}"
    if is_missing(cell):
        return InvalidInput(
            f"{where}: the value is missing.",
            fix='Fill it with a public constant, drop the row, or set the column to "ignore".',
        )
    allowed = "a number with a decimal point"
    if isinstance(column, Values):
        listed = ", ".join(column.values[:8]) + (", …" if column.width > 8 else "")
        allowed = f"one of the listed values ({listed})"
    return InvalidInput(
        f"{where} must hold {allowed}, and got {cell!r:.40}.", fix="Correct the cell, or the column's range."
    )


def _require_range(column: Column) -> Range | Values:
    assert not isinstance(column, str)
    return column
