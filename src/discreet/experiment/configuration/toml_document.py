"""Read, change and write TOML documents, and build records from them."""

import re
import tomllib
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tomlkit
import tomlkit.items
from pydantic import TypeAdapter, ValidationError

from discreet.errors import InvalidInput
from discreet.validation_errors import describe_file_error

T = TypeVar("T")
LONG = 1000  # members of a list, from which on its integers are written at once
NAME_PART = re.compile(r""" *("[^"]*"|'[^']*'|[^.="']+) *""")
SETTING = re.compile(rf"(?P<name>{NAME_PART.pattern}(?:\.{NAME_PART.pattern})*)=(?P<value>.*)", re.DOTALL)


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse a TOML document. `name` is what errors call it."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a plain ValueError
        raise InvalidInput(
            f"{name} is not valid TOML: {error}.", fix="Put text into quotes, and write each key once."
        ) from None


def read_toml_text(path: Path) -> str:
    """Read the text of a file, or say why it can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {path}.", fix="`discreet init` writes one to start from.") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidInput(f"{path} can't be read ({reason}).") from None


def format_toml(data: Mapping[str, Any]) -> str:
    """Write plain data as TOML. None is left out, since TOML has no value for it."""
    return tomlkit.dumps(_without_none(data))


def override_values(text: str, settings: Iterable[str]) -> str:
    """Set each `a.b=value` in a document and keep its comments.

    A name is a key of TOML: a part that has a dot stands in quotes. A value is TOML, and text needs no quotes.
    """
    document = tomlkit.parse(text)
    for setting in settings:
        names, value = _split_setting(setting)
        if not all(names) or value is None:
            raise InvalidInput(
                f"--set needs NAME=VALUE, and got {setting!r}.", fix="For example: --set privacy.epsilon=1"
            )
        table: Any = document
        for name in names[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, MutableMapping):
                raise InvalidInput(f"{setting}: {name!r} is a value, not a table.")
        table[names[-1]] = _parse_value(value.strip())
    return tomlkit.dumps(document)


def set_values(text: str, values: Mapping[str, Any]) -> str:
    """Set top-level keys of a document, and keep its comments."""
    document = tomlkit.parse(text)
    for name, value in values.items():
        document[name] = value
    return tomlkit.dumps(document)


def _split_setting(setting: str) -> tuple[list[str], str | None]:
    """Split a setting into the parts of its name and its value. The value is None if there is no such name."""
    found = SETTING.fullmatch(setting)
    if found is None:
        return [], None
    parts = [part[1:-1] if part[:1] in ("'", '"') else part.strip() for part in NAME_PART.findall(found["name"])]
    return parts, found["value"]


def build_record(kind: type[T], data: Any) -> T:
    """Build the record that a document describes. InvalidInput names the key, what is allowed and what was got."""
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        raise InvalidInput(describe_file_error(kind, error)) from None


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _write_numbers(numbers: Sequence[int]) -> tomlkit.items.Item:
    """Write a list of integers at once, as tomlkit would write it, whose time grows as the square of a list's length.

    An item of tomlkit with a text of its own is an integer.
    """
    return tomlkit.items.Integer(0, tomlkit.items.Trivia(), f"[{', '.join(map(str, numbers))}]")


def _without_none(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(key): _without_none(item) for key, item in value.items() if item is not None}
        case list() | tuple() if len(value) > LONG and set(map(type, value)) == {int}:
            return _write_numbers(value)
        case list() | tuple():
            return [_without_none(item) for item in value]
        case _:
            return value
