"""A user's own table: a Parquet file with a column that names the client, scaled by publicly known ranges."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch

from discreet.part import NonNegative, part
from discreet.places import Places
from discreet.tasks.reading import parquet_table
from discreet.tasks.tabular import as_given, check, task_from
from discreet.tasks.task import Task


@part
class Parquet:
    """As `Csv`, of a file that pyarrow reads: numbers are scaled by their ranges, listed values become one input each.

    A label with `values` is a class, one with `min` and `max` a number to be predicted.
    """

    kind: Literal["parquet"] = "parquet"
    path: str
    client: str
    label: str
    ranges: str | dict[str, Any]
    test_fraction: NonNegative = 0.2

    def __post_init__(self) -> None:
        check(self)

    def load(self, generator: torch.Generator, places: Places) -> Task:
        return task_from(self, parquet_table, generator, places)


def clients_from_parquet(
    path: str | Path,
    *,
    client: str,
    label: str,
    ranges: str | Path | Mapping[str, Any],
    test_fraction: float = 0.2,
    generator: torch.Generator | None = None,
) -> Task:
    """A Parquet file as a task: `client` and `label` name columns, `ranges` is a TOML file or a table of columns."""
    table = Parquet(path=str(path), client=client, label=label, ranges=as_given(ranges), test_fraction=test_fraction)
    return table.load(generator or torch.Generator().manual_seed(0), Places.of())
