"""A CSV file, read row by row: a table of any size passes through without being held."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import InvalidInput

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class Table:
    """Its columns, and a way through its rows."""

    path: Path
    columns: tuple[str, ...]
    delimiter: str

    @classmethod
    def open(cls, path: Path) -> "Table":
        if not path.is_file():
            raise InvalidInput(f"There is no file {path}.")
        first = next(_lines(path), "")
        delimiter = max(DELIMITERS, key=first.count)  # of equals the first: the comma
        _, header = next(_records(path, delimiter), (0, []))
        columns = tuple(name.strip() for name in header)
        if not columns:
            raise InvalidInput(f"{path} is empty.", fix="Its first line must name the columns.")
        if twice := sorted({name for name in columns if columns.count(name) > 1}):
            raise InvalidInput(f"{path} names column {twice[0]!r} twice.", fix="Give every column its own name.")
        if "" in columns:
            raise InvalidInput(f"Column {columns.index('') + 1} of {path} has no name.", fix="Name it in line 1.")
        return cls(path, columns, delimiter)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Each row with the number of its line, cells stripped; empty lines are passed over."""
        records = _records(self.path, self.delimiter)
        next(records)
        for line, cells in records:
            if len(cells) != len(self.columns):
                raise InvalidInput(
                    f"Line {line} of {self.path} has {len(cells)} cells, and the header names {len(self.columns)}.",
                    fix="Look for a missing quote or delimiter there.",
                )
            yield line, [cell.strip() for cell in cells]

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


def is_missing(cell: str) -> bool:
    return cell.lower() in MISSING


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(_lines(path), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells) or len(cells) > 1:
                yield reader.line_num, cells
    except csv.Error as error:
        raise InvalidInput(
            f"Line {reader.line_num} of {path} is not CSV: {error}.", fix="Look at its quotes."
        ) from None


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            yield from text
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text: {error.reason}.", fix="Save it as CSV in UTF-8.") from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}.") from None
