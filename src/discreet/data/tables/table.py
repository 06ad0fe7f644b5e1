"""A table of any size, from CSV or Parquet. Its rows are read in chunks, so it need not fit into memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput, nearest_names

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})

Cells: TypeAlias = Sequence[str] | NDArray[Any]


class Chunk(NamedTuple):
    """Some rows of a table.

    Attributes:
        rows: The number of each row in the file.
        cells: Returns the cells of a column, given its index: numbers in an array, or else stripped text. A missing
            cell of text is empty.
    """

    rows: Sequence[int]
    cells: Callable[[int], Cells]


@dataclass(frozen=True)
class Table:
    """A table file: the names of its columns, which are unique, and a function that reads its rows.

    Attributes:
        path: The file, or what messages call the table.
        columns: The names of the columns, in the order of the file.
        chunks: Returns an iterator over all rows; each call reads the file from the start.
    """

    path: Path | str
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
        """What the number of a row counts, for messages: lines of a CSV file, or rows of a Parquet file."""
        return "line" if self.kind == "csv" else "row"

    def rows(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the number of each row and its cells as text."""
        for chunk in self.chunks():
            columns = [as_texts(chunk.cells(index)) for index in range(len(self.columns))]
            yield from zip(chunk.rows, zip(*columns, strict=True), strict=True)

    def index(self, name: str, purpose: str) -> int:
        """Return the index of a column, and refuse a name that the table doesn't have."""
        if name not in self.columns:
            raise InvalidInput(
                f"{self.path} has no column {name!r} for the {purpose}.",
                fix=f"Its columns: {nearest_names(self.columns, name)}.",
            )
        return self.columns.index(name)

    def features(self, client: str, label: str) -> list[tuple[int, str]]:
        """Return the index and name of every column but the client's and the label's, which must exist and differ."""
        if client == label:
            raise InvalidInput(f"Column {client!r} can't be both the client and the label.", fix="Name two columns.")
        excluded = {self.index(client, "client"), self.index(label, "label")}
        return [(index, name) for index, name in enumerate(self.columns) if index not in excluded]


def as_texts(cells: Cells) -> Sequence[str]:
    """Convert cells to text."""
    return list(map(str, cells.tolist())) if isinstance(cells, np.ndarray) else cells


def is_missing(cell: str) -> bool:
    """Return whether a cell is empty or one of the usual words for a missing value."""
    return cell.lower() in MISSING


def list_names(names: Sequence[str], most: int) -> str:
    """Write names of columns for a message: at most so many, each shortened."""
    return ", ".join(f"{name!r:.60}" for name in names[:most]) + (", …" if len(names) > most else "")
