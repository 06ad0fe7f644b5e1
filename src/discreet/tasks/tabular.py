"""A user's own table becomes a task: encoded, a share of each client's rows held out, and told on the card."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch

from discreet.errors import InvalidInput
from discreet.federation import Federation
from discreet.places import Places
from discreet.tasks.encoding import Encoding, grouped
from discreet.tasks.ranges import Range, Ranges, Values, found_at, ranges_from
from discreet.tasks.table import Table
from discreet.tasks.task import Task, held_out


class Source(Protocol):
    """What a table's part says, whatever the format: columns by name, and a TOML file or a table of ranges."""

    @property
    def path(self) -> str: ...
    @property
    def client(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def ranges(self) -> str | dict[str, Any]: ...
    @property
    def test_fraction(self) -> float: ...


def check(source: Source) -> None:
    if not source.test_fraction < 1:
        raise InvalidInput(f"test_fraction must be below 1, and got {source.test_fraction}.")


def as_given(ranges: str | Path | Mapping[str, Any]) -> str | dict[str, Any]:
    """Ranges as a part holds them."""
    return dict(ranges) if isinstance(ranges, Mapping) else str(ranges)


def task_from(source: Source, opened: Callable[[Path], Table], generator: torch.Generator, places: Places) -> Task:
    ranges = ranges_from(source.ranges, places.folder)
    table = opened(found_at(source.path, places.folder))
    encoding = Encoding.of(table, ranges, client=source.client, label=source.label)
    names, sizes, inputs, targets = grouped(table, encoding)
    train, test = held_out(sizes, source.test_fraction, generator)
    kept = tuple(torch.bincount(torch.repeat_interleave(torch.tensor(sizes))[train], minlength=len(sizes)).tolist())
    return Task(
        name=Path(source.path).stem,
        train=Federation(inputs[train], targets[train], kept),
        test_inputs=inputs[test],
        test_targets=targets[test],
        kind="classification" if isinstance(encoding.label, Values) else "regression",
        classes=encoding.label.width,
        client_names=names,
        facts=_facts(source, encoding),
        not_covered=_not_covered(ranges),
    )


def _facts(source: Source, encoding: Encoding) -> tuple[str, ...]:
    facts = [
        "Columns are scaled to [-1, 1] by public ranges, listed values become one input each, and values outside a "
        "range are moved to its end: nothing was fitted on the clients' data.",
        f"Clients are the values of column {source.client!r}; their names and numbers of examples are public.",
    ]
    if isinstance(encoding.label, Range):
        low, high = encoding.label.min, encoding.label.max
        facts.append(f"The label {source.label!r} is scaled from [{low:g}, {high:g}] to [-1, 1], and so are errors.")
    if source.test_fraction:
        facts.append(f"{source.test_fraction:.0%} of each client's examples are held out for evaluation.")
    return tuple(facts)


def _not_covered(ranges: Ranges) -> tuple[str, ...]:
    if not ranges.taken_from_data:
        return ()
    return ("The ranges that scale the columns were taken from the data itself, and so reveal something of it.",)
