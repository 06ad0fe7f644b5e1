"""Public ranges of a table's columns. Scaling by them reveals nothing about the data, because nothing is fitted."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from discreet.data.tables.column_kinds import DateRange, HashedText, InputColumn, Range, Values
from discreet.errors import InvalidInput
from discreet.part import Flag, from_plain, part

Column: TypeAlias = InputColumn | Literal["ignore"]


@part
class Ranges:
    """What is publicly known about each column.

    Attributes:
        columns: The range or values of each column, or "ignore" to leave the column out.
        taken_from_data: Whether the ranges were copied from the data, as in a starter file, and are not public.
    """

    columns: dict[str, Column]
    taken_from_data: Flag = False


def load_ranges(source: "str | Path | Mapping[str, Any] | Ranges", folder: Path | None = None) -> Ranges:
    """Load ranges from a TOML file or from a mapping of columns. `Ranges` are returned unchanged."""
    match source:
        case Ranges():
            return source
        case Mapping():
            tables = isinstance(source.get("columns"), Mapping) and set(source) <= {"columns", "taken_from_data"}
            return _parse_ranges(dict(source) if tables else {"columns": dict(source)}, "The ranges")
        case _:
            path = find_file(str(source), folder)
            try:
                return _parse_ranges(tomllib.loads(path.read_text(encoding="utf-8-sig")), str(path))
            except (ValueError, RecursionError) as error:  # also not UTF-8, a number too long, or nested too deep
                raise InvalidInput(f"{path} is not valid TOML: {error}.") from None


def _parse_ranges(document: dict[str, Any], where: str) -> Ranges:
    columns = document.get("columns")
    if not isinstance(columns, Mapping):
        raise InvalidInput(f"{where} has no [columns] table.", fix="Write one: discreet data check --write-ranges")
    ranges: Ranges = from_plain(
        Ranges, {**document, "columns": {name: _parse_column(name, column, where) for name, column in columns.items()}}
    )
    return ranges


def _parse_column(name: str, column: Any, where: str) -> Any:
    kind: type[InputColumn]
    match column:
        case Range() | Values() | DateRange() | HashedText() | "ignore":
            return column
        case {"min": _, "max": _, **more} if not more:
            kind = Range
        case {"values": _, **more} if not more:
            kind = Values
        case {"first": _, "last": _, **more} if not more:
            kind = DateRange
        case {"text_buckets": _, **more} if not more:
            kind = HashedText
        case _:
            raise InvalidInput(
                f"{where}: column {name!r} must be {{ min = …, max = … }}, {{ values = […] }}, "
                f'{{ first = DATE, last = DATE }}, {{ text_buckets = 64 }} or "ignore", and got {column!r:.60}.'
            )
    try:
        return from_plain(kind, dict(column))
    except InvalidInput as error:
        raise InvalidInput(f"{where}: column {name!r}: {error}") from None


def find_file(path: str, folder: Path | None) -> Path:
    """Find a file that an experiment names: in `folder`, or relative to the current directory."""
    candidates = [Path(path)] if folder is None else [folder / path, Path(path)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise InvalidInput(f"There is no file {path}.", fix=f"Looked for {' and '.join(map(str, candidates))}.")
