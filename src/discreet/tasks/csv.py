"""A user's own table: a CSV file with a column that names the client, scaled by publicly known ranges."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from discreet.errors import InvalidInput
from discreet.federation import Federation
from discreet.part import NonNegative, part
from discreet.places import Places
from discreet.tasks.ranges import Column, Range, Ranges, Values, as_number, found_at, ranges_from
from discreet.tasks.table import Table, is_missing
from discreet.tasks.task import Task, held_out


@part
class Csv:
    """Numbers are scaled to [-1, 1] by their ranges, listed values become one input each; nothing is fitted.

    A label with `values` is a class, one with `min` and `max` a number to be predicted.
    """

    kind: Literal["csv"] = "csv"
    path: str
    client: str
    label: str
    ranges: str | dict[str, Any]
    test_fraction: NonNegative = 0.2

    def __post_init__(self) -> None:
        if not self.test_fraction < 1:
            raise InvalidInput(f"test_fraction must be below 1, and got {self.test_fraction}.")

    def load(self, generator: torch.Generator, places: Places) -> Task:
        ranges = ranges_from(self.ranges, places.folder)
        table = Table.open(found_at(self.path, places.folder))
        encoding = Encoding.of(table, ranges, client=self.client, label=self.label)
        names, sizes, inputs, targets = _grouped(table, encoding)
        train, test = held_out(sizes, self.test_fraction, generator)
        kept = tuple(torch.bincount(torch.repeat_interleave(torch.tensor(sizes))[train], minlength=len(sizes)).tolist())
        classification = isinstance(encoding.label, Values)
        return Task(
            name=Path(self.path).stem,
            train=Federation(inputs[train], targets[train], kept),
            test_inputs=inputs[test],
            test_targets=targets[test],
            kind="classification" if classification else "regression",
            classes=encoding.label.width,
            client_names=names,
            facts=_facts(self, encoding),
            not_covered=_not_covered(ranges),
        )


@dataclass(frozen=True)
class Encoding:
    """How a row becomes numbers: what each column is publicly known to hold."""

    client_at: int
    label_at: int
    label_name: str
    label: Range | Values
    features: tuple[tuple[int, str, Range | Values], ...]

    @classmethod
    def of(cls, table: Table, ranges: Ranges, *, client: str, label: str) -> "Encoding":
        known = ranges.columns
        others = table.features(client, label)
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
        features = tuple((at, name, _used(known[name])) for at, name in others if known[name] != "ignore")
        if not features:
            raise InvalidInput(f"All columns of {table.path} but client and label are ignored: nothing to learn from.")
        target = known.get(label)
        if not isinstance(target, Range | Values) or (isinstance(target, Values) and target.width < 2):
            raise InvalidInput(
                f"The label {label!r} needs a public range too.",
                fix="Give it { values = […] } with at least two classes, or { min = …, max = … } for a number.",
            )
        return cls(table.columns.index(client), table.columns.index(label), label, target, features)

    @property
    def width(self) -> int:
        return sum(column.width for _, _, column in self.features)


def number_in(cell: str, line: int, name: str) -> float:
    number = as_number(cell)
    if number is None:
        raise _unreadable(cell, line, name, "a number with a decimal point")
    return number


def value_in(cell: str, column: Values, line: int, name: str) -> int:
    """Which of the listed values the cell holds."""
    found = column.lookup.get(cell)
    number = as_number(cell) if found is None else None
    if number is not None:
        found = column.numbers.get(number)
    if found is None:
        listed = ", ".join(column.values[:8]) + (", …" if column.width > 8 else "")
        raise _unreadable(cell, line, name, f"one of the listed values ({listed})")
    return found


def _unreadable(cell: str, line: int, name: str, allowed: str) -> InvalidInput:
    if is_missing(cell):
        return InvalidInput(
            f"Line {line}, column {name!r}: the value is missing.",
            fix='Fill it with a public constant, drop the row, or set the column to "ignore".',
        )
    return InvalidInput(
        f"Line {line}, column {name!r} must hold {allowed}, and got {cell!r:.40}.",
        fix="Correct the cell, or the column's range.",
    )


def _grouped(table: Table, encoding: Encoding) -> tuple[tuple[str, ...], tuple[int, ...], Tensor, Tensor]:
    """The whole table as numbers, client after client in the order of their names."""
    inputs, targets, owners = array("f"), array("d"), array("q")
    clients: dict[str, int] = {}
    encoders = [(at, name, _encoder(column)) for at, name, column in encoding.features]
    label = encoding.label
    for line, row in table.rows():
        owner = row[encoding.client_at]
        if owner == "":
            raise _unreadable(owner, line, table.columns[encoding.client_at], "a client's name")
        owners.append(clients.setdefault(owner, len(clients)))
        for at, name, encode in encoders:
            encode(inputs, row[at], line, name)
        cell = row[encoding.label_at]
        if isinstance(label, Values):
            targets.append(value_in(cell, label, line, encoding.label_name))
        else:
            targets.append(label.scaled(number_in(cell, line, encoding.label_name)))
    if not owners:
        raise InvalidInput(f"{table.path} names its columns and has no rows.")
    names = sorted(clients)
    rank = torch.empty(len(names), dtype=torch.int64)
    rank[torch.tensor([clients[name] for name in names])] = torch.arange(len(names))
    owner_ranks = rank[torch.frombuffer(owners, dtype=torch.int64)]
    order = owner_ranks.argsort(stable=True)
    flat = torch.frombuffer(inputs, dtype=torch.float32).reshape(-1, encoding.width)[order]
    wanted = torch.frombuffer(targets, dtype=torch.float64)[order]
    wanted = wanted.to(torch.int64 if isinstance(label, Values) else torch.float32)
    return tuple(names), tuple(torch.bincount(owner_ranks).tolist()), flat, wanted


def _encoder(column: Range | Values) -> Any:
    """What appends a cell's numbers to the row; made once a column, since it runs once a cell."""
    if isinstance(column, Range):
        bounds = column

        def scale(out: "array[float]", cell: str, line: int, name: str) -> None:
            out.append(bounds.scaled(number_in(cell, line, name)))

        return scale
    known, hot = column.lookup, [[float(i == j) for i in range(column.width)] for j in range(column.width)]

    def one_hot(out: "array[float]", cell: str, line: int, name: str) -> None:
        found = known.get(cell)
        out.extend(hot[value_in(cell, column, line, name) if found is None else found])

    return one_hot


def _used(column: Column) -> Range | Values:
    assert not isinstance(column, str)
    return column


def _facts(task: Csv, encoding: Encoding) -> tuple[str, ...]:
    facts = [
        "Columns are scaled to [-1, 1] by public ranges, listed values become one input each, and values outside a "
        "range are moved to its end: nothing was fitted on the clients' data.",
        f"Clients are the values of column {task.client!r}; their names and numbers of examples are public.",
    ]
    if isinstance(encoding.label, Range):
        low, high = encoding.label.min, encoding.label.max
        facts.append(f"The label {task.label!r} is scaled from [{low:g}, {high:g}] to [-1, 1], and so are errors.")
    if task.test_fraction:
        facts.append(f"{task.test_fraction:.0%} of each client's examples are held out for evaluation.")
    return tuple(facts)


def _not_covered(ranges: Ranges) -> tuple[str, ...]:
    if not ranges.taken_from_data:
        return ()
    return ("The ranges that scale the columns were taken from the data itself, and so reveal something of it.",)


def clients_from_csv(
    path: str | Path,
    *,
    client: str,
    label: str,
    ranges: str | Path | Mapping[str, Any],
    test_fraction: float = 0.2,
    generator: torch.Generator | None = None,
) -> Task:
    """A CSV file as a task: `client` and `label` name columns, `ranges` is a TOML file or a table of columns."""
    own = dict(ranges) if isinstance(ranges, Mapping) else str(ranges)
    table = Csv(path=str(path), client=client, label=label, ranges=own, test_fraction=test_fraction)
    return table.load(generator or torch.Generator().manual_seed(0), Places.of())
