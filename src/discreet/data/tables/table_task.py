"""A user's own table becomes a task: CSV or Parquet, a column names the client, public ranges scale the others."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import torch

from discreet.data.federation import Federation
from discreet.data.tables.file_reader import open_csv, open_parquet
from discreet.data.tables.ranges import Range, Ranges, Values, find_file, load_ranges
from discreet.data.tables.table import Table
from discreet.data.tables.table_encoding import Encoding, encode_table
from discreet.data.tasks.from_arrays import describe_multiplicity
from discreet.data.tasks.task import Task, split_held_out
from discreet.errors import InvalidInput
from discreet.part import Count, NonNegative, part
from discreet.paths import Paths
from discreet.privacy.release import Person

RANGES_FROM_DATA = (
    "The ranges that scale the columns: they were taken from the data itself, and reveal something of it beyond ε."
)
READERS: dict[str, Callable[[Path], Table]] = {"csv": open_csv, "parquet": open_parquet}


@part
class TableTask:
    """Numbers are scaled to [-1, 1] by their ranges, listed values become one input each; nothing is fitted.

    A label with `values` is a class, one with `min` and `max` a number to be predicted. `max_multiplicity` is in how
    many clients one example may lie, as only its owner knows.
    """

    kind: Literal["csv", "parquet"]
    path: str
    client: str
    label: str
    ranges: str | dict[str, Any]
    test_fraction: NonNegative = 0.2
    max_multiplicity: Count = 1

    def __post_init__(self) -> None:
        if not self.test_fraction < 1:
            raise InvalidInput(f"test_fraction must be below 1, and got {self.test_fraction}.")

    def load(self, generator: torch.Generator, paths: Paths, person: Person | None = None) -> Task:
        """With a `person`, the rows of each are bounded before any are held out for evaluation."""
        ranges = load_ranges(self.ranges, paths.folder)
        table = READERS[self.kind](find_file(self.path, paths.folder))
        column, most = (None, None) if person is None else (person.column, person.max_examples)
        encoding = Encoding.of(table, ranges, client=self.client, label=self.label, person=column)
        names, sizes, inputs, targets, left_out = encode_table(table, encoding, most)
        train, test = split_held_out(sizes, self.test_fraction, generator)
        kept = torch.bincount(torch.repeat_interleave(torch.tensor(sizes))[train], minlength=len(sizes)).tolist()
        return Task(
            name=Path(self.path).stem,
            train=Federation(inputs[train], targets[train], tuple(kept), self.max_multiplicity),
            test_inputs=inputs[test],
            test_targets=targets[test],
            kind="classification" if isinstance(encoding.label, Values) else "regression",
            classes=encoding.label.width,
            client_names=names,
            facts=_describe_data(self, encoding, ranges),
            not_covered=_disclose_ranges(ranges),
            ranges_from_data=ranges.taken_from_data,
            person=person,
            rows_left_out=left_out,
        )


def clients_from_csv(
    path: str | Path,
    *,
    client: str,
    label: str,
    ranges: str | Path | Mapping[str, Any],
    test_fraction: float = 0.2,
    max_multiplicity: int = 1,
    person: Person | None = None,
    generator: torch.Generator | None = None,
) -> Task:
    """A CSV file as a task: `client` and `label` name columns, `ranges` is a TOML file or a table of columns.

    `max_multiplicity` is in how many clients one example may lie. A promise for one `person` needs it here too: of
    each person, as many rows as it says are used, the first in the client of the first.
    """
    return _load_clients("csv", path, client, label, ranges, test_fraction, max_multiplicity, person, generator)


def clients_from_parquet(
    path: str | Path,
    *,
    client: str,
    label: str,
    ranges: str | Path | Mapping[str, Any],
    test_fraction: float = 0.2,
    max_multiplicity: int = 1,
    person: Person | None = None,
    generator: torch.Generator | None = None,
) -> Task:
    """As `clients_from_csv`, of a Parquet file."""
    return _load_clients("parquet", path, client, label, ranges, test_fraction, max_multiplicity, person, generator)


def _load_clients(
    kind: Literal["csv", "parquet"],
    path: str | Path,
    client: str,
    label: str,
    ranges: str | Path | Mapping[str, Any],
    test_fraction: float,
    max_multiplicity: int,
    person: Person | None,
    generator: torch.Generator | None,
) -> Task:
    table = TableTask(
        kind=kind,
        path=str(path),
        client=client,
        label=label,
        ranges=dict(ranges) if isinstance(ranges, Mapping) else str(ranges),
        test_fraction=test_fraction,
        max_multiplicity=max_multiplicity,
    )
    return table.load(generator or torch.Generator().manual_seed(0), Paths.default(), person)


def _describe_data(source: TableTask, encoding: Encoding, ranges: Ranges) -> tuple[str, ...]:
    """What the card assumes. A bound that was taken from the data is no number to print."""
    facts = [
        "Columns are scaled to [-1, 1] by their ranges, listed values become one input each, and values outside a "
        "range are moved to its end."
        + ("" if ranges.taken_from_data else " The ranges are public: nothing was fitted on the clients' data."),
        f"Clients are the values of column {source.client!r}; their names and numbers of examples are public.",
    ]
    if isinstance(encoding.label, Range):
        low, high = encoding.label.min, encoding.label.max
        bounds = "" if ranges.taken_from_data else f"from [{low:g}, {high:g}] "
        facts.append(f"The label {source.label!r} is scaled {bounds}to [-1, 1], and so are errors.")
    if source.test_fraction:
        facts.append(f"{source.test_fraction:.0%} of each client's examples are held out for evaluation.")
    return (*facts, describe_multiplicity(source.max_multiplicity))


def _disclose_ranges(ranges: Ranges) -> tuple[str, ...]:
    return (RANGES_FROM_DATA,) if ranges.taken_from_data else ()
