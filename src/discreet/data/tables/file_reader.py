"""Open a CSV or Parquet file as a table. Only Parquet needs pyarrow."""

import csv
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from discreet.data.tables.table import Cells, Chunk, Table
from discreet.errors import InvalidInput
from discreet.extras import import_library

DELIMITERS = ",;\t|"
ROWS = 1 << 14  # rows of a chunk: enough for fast arrays, and a few megabytes at most
PARQUET = b"PAR1"  # the first bytes of a Parquet file
ZIP = b"PK\x03\x04"  # the first bytes of an archive, such as a workbook


def open_table(path: Path) -> Table:
    """Open a CSV or Parquet file; its first bytes decide which of the two it is."""
    return open_parquet(path) if _read_first_bytes(path) == PARQUET else open_csv(path)


def open_csv(path: Path) -> Table:
    """Open a CSV file. The most frequent of comma, semicolon, tab and | in the first line separates the cells."""
    first_bytes = _read_first_bytes(path)
    if first_bytes == PARQUET:
        raise InvalidInput(f"{path} is a Parquet file, not CSV.", fix='Use kind = "parquet", or clients_from_parquet.')
    if first_bytes == ZIP or b"\0" in first_bytes:
        what = "an Excel workbook or another archive" if first_bytes == ZIP else "not text"
        raise InvalidInput(f"{path} is not CSV: it is {what}.", fix="Save it as CSV in UTF-8.")
    first = next(_read_lines(path), "")
    delimiter = max(DELIMITERS, key=first.count)  # the comma if none occurs more often
    _, header = next(_read_records(path, delimiter), (0, []))
    return Table(path, "csv", tuple(name.strip() for name in header), partial(_read_csv_chunks, path, delimiter))


def open_parquet(path: Path) -> Table:
    """Open a Parquet file, which needs pyarrow."""
    _read_first_bytes(path)
    with _open_parquet_file(path) as file:
        columns = tuple(str(name).strip() for name in file.schema_arrow.names)
    return Table(path, "parquet", columns, partial(_read_parquet_chunks, path))


def _read_first_bytes(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe or a device, which can be read only once"
        raise InvalidInput(f"A table must be an ordinary file, and {path} is {what}.", fix="Save the table to a file.")
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    try:
        with path.open("rb") as file:
            return file.read(len(PARQUET))
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}.") from None


def _read_csv_chunks(path: Path, delimiter: str) -> Iterator[Chunk]:
    """Yield rows with their line numbers. The rows before a malformed row are yielded before its error is raised."""
    with closing(_read_records(path, delimiter)) as records:
        _, header = next(records)
        lines, rows, malformed = list[int](), list[list[str]](), None
        try:
            for line, cells in records:
                if len(cells) != len(header):
                    raise InvalidInput(
                        f"Line {line} of {path} has {len(cells)} cells, and the header names {len(header)}.",
                        fix="Look for a missing quote or delimiter there.",
                    )
                lines.append(line)
                rows.append(cells)
                if len(rows) == ROWS:
                    yield _transpose(lines, rows)
                    lines, rows = [], []
        except InvalidInput as error:
            malformed = error
    if rows:
        yield _transpose(lines, rows)
    if malformed:
        raise malformed


def _transpose(lines: list[int], rows: list[list[str]]) -> Chunk:
    columns = list(zip(*rows, strict=True))
    return Chunk(lines, lambda column: [cell.strip() for cell in columns[column]])


def _read_records(path: Path, delimiter: str) -> Generator[tuple[int, list[str]], None, None]:
    """Yield each record with its line number, and skip empty lines."""
    with closing(_read_lines(path)) as lines:  # a malformed record leaves the file open otherwise
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells) or len(cells) > 1:
                    yield reader.line_num, cells
        except csv.Error as error:
            raise InvalidInput(
                f"Line {reader.line_num} of {path} is not CSV: {error}.", fix="Look at its quotes."
            ) from None


def _read_lines(path: Path) -> Generator[str, None, None]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            yield from text
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text: {error.reason}.", fix="Save it as CSV in UTF-8.") from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}.") from None


def _read_parquet_chunks(path: Path) -> Iterator[Chunk]:
    arrow, first = _import_pyarrow(), 1
    with _open_parquet_file(path) as file:
        batches = file.iter_batches(batch_size=ROWS)
        while True:
            try:
                batch = next(batches, None)
            except (arrow.ArrowException, OSError) as error:
                raise InvalidInput(f"{path} can't be read from row {first} on: {_one_line(error)}.") from None
            if batch is None:
                return
            yield Chunk(range(first, first + len(batch)), partial(_read_cells, arrow, batch))
            first += len(batch)


def _read_cells(arrow: Any, batch: Any, index: int) -> Cells:
    """Return a column as numbers if all its cells are numbers, and else as text."""
    column = batch.column(index)
    numeric = arrow.types.is_integer(column.type) or arrow.types.is_floating(column.type)
    if numeric and not column.null_count:
        numbers: Cells = column.to_numpy(zero_copy_only=False)
        return numbers
    return list(map(as_csv_text, column.to_pylist()))


def as_csv_text(value: Any) -> str:
    """Write a value as a CSV file would."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case bytes():
            return value.decode("utf-8", "replace").strip()
        case _:
            return str(value).strip()


def _open_parquet_file(path: Path) -> Any:
    arrow = _import_pyarrow()
    try:
        return arrow.parquet.ParquetFile(path)
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{path} is not a Parquet file that can be read: {_one_line(error)}.") from None


def _one_line(error: Exception) -> str:
    """Return Arrow's message, which may have several lines, in one line."""
    return " ".join(str(error).split()).rstrip(".")


def _import_pyarrow() -> Any:
    import_library("pyarrow.parquet", "Reading a Parquet file")
    return import_library("pyarrow")
