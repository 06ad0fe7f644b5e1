"""The code that an experiment names: its model, loss, metric, task, extractor, recipe and parts. Reading runs none."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet.trust import OwnCode
from discreet.user_code import find_code
from discreet.user_part import RESERVED


def find_own_code(data: Mapping[str, Any], folder: Path) -> list[OwnCode]:
    """List the code that would run for an experiment, as it is read from the disk now.

    Args:
        data: The experiment's file as plain data, as it was written or in full.
        folder: File names are relative to this folder.

    Raises:
        InvalidInput: A file or module doesn't exist.
    """
    return [find_code(reference, folder, settings) for reference, settings in _references(data)]


def _references(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every reference to a user's code, with the rest of the table in which it is written."""
    for name in ("loss", "metric"):
        if isinstance(data.get(name), str):
            yield data[name], {}
    table = data.get("algorithm")
    if isinstance(table, Mapping) and ":" in str(table.get("recipe")):
        yield str(table["recipe"]), {key: value for key, value in table.items() if key != "recipe"}
    yield from _kinds([data.get(name) for name in ("task", "model", "metric", "algorithm")])


def _kinds(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tables whose kind is a reference. What such a table holds is passed on as it is, and not searched."""
    if isinstance(value, Mapping):
        if ":" in str(value.get("kind")):
            yield str(value["kind"]), {key: item for key, item in value.items() if key not in RESERVED}
        else:
            yield from _kinds(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from _kinds(item)
