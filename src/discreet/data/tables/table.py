"""A table of any size, CSV or Parquet: its columns, and its rows some at a time, without being held."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})

Cells: TypeAlias = Sequence[str] | NDArray[Any]


class Chunk(NamedTuple):
    """Some rows: the number of each in the file, and a column's cells, made when they are asked for.

    Cells are numbers in an array where the file has such, and else stripped text, in which nothing is empty.
    """

    rows: Sequence[int]
    cells: Callable[[int], Cells]


@dataclass(frozen=True)
class Table:
    """Its columns, each with a name of its own, and a way through its rows."""

    path: Path
    kind: Literal["csv", "parquet"]
    columns: tuple[str, ...]
    chunks: Callable[[], Iterator[Chunk]]

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidInput(f"{self.path} is empty.", fix="It must name its columns: CSV does so in its first line.")
        if twice := sorted({name for name in self.columns if self.columns.count(name) > 1}):
            raise InvalidInput(f"{self.path} names column {twice[0]!r} twice.", fix="Give every column its own name.")
        if "" in self.columns:
            raise InvalidInput(f"Column {self.columns.index('') + 1} of {self.path} has no name.", fix="Name it.")

    @property
    def row(self) -> str:
        """What a row's number counts: a line of CSV is found in any editor, and Parquet has none."""
        return "line" if self.kind == "csv" else "row"

    def rows(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Each row's number and cells, as text."""
        for chunk in self.chunks():
            columns = [as_texts(chunk.cells(at)) for at in range(len(self.columns))]
            yield from zip(chunk.rows, zip(*columns, strict=True), strict=True)

    def index(self, name: str, purpose: str) -> int:
        if name not in self.columns:
            raise InvalidInput(
                f"{self.path} has no column {name!r} for the {purpose}.", fix=f"Its columns: {', '.join(self.columns)}."
            )
        return self.columns.index(name)

    def features(self, client: str, label: str) -> list[tuple[int, str]]:
        """All other columns, in the order of the file; the client's and the label's must be there and differ."""
        if client == label:
            raise InvalidInput(f"Column {client!r} can't be both the client and the label.", fix="Name two columns.")
        apart = {self.index(client, "client"), self.index(label, "label")}
        return [(index, name) for index, name in enumerate(self.columns) if index not in apart]


def as_texts(cells: Cells) -> Sequence[str]:
    return list(map(str, cells.tolist())) if isinstance(cells, np.ndarray) else cells


def is_missing(cell: str) -> bool:
    return cell.lower() in MISSING
