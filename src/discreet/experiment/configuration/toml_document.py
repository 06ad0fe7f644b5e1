"""TOML in and out: what is wrong with a file is said in its own words."""

import tomllib
from collections.abc import Iterable, Mapping, MutableMapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

import tomlkit
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import is_pydantic_dataclass

from discreet.errors import InvalidInput
from discreet.part import describe_error

T = TypeVar("T")


def parse_toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{name} is no TOML: {error}.", fix="Text needs quotes, and each key stands once.") from None


def read_toml_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {path}.", fix="`discreet init` writes one to start from.") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InvalidInput(f"{path} can't be read ({reason}).") from None


def format_toml(data: Mapping[str, Any]) -> str:
    """Plain data as TOML; what is None is left out, since TOML has no nothing."""
    return tomlkit.dumps(_without_none(data))


def override_values(text: str, settings: Iterable[str]) -> str:
    """The document with each `a.b=value` set, its comments kept; a value is TOML, and text needs no quotes."""
    document = tomlkit.parse(text)
    for setting in settings:
        path, equals, value = setting.partition("=")
        names = path.strip().split(".")
        if not equals or not all(names):
            raise InvalidInput(f"--set needs NAME=VALUE, and got {setting!r}.", fix="Say --set privacy.epsilon=1")
        table: Any = document
        for name in names[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, MutableMapping):
                raise InvalidInput(f"{setting}: {name!r} is a value, not a table.")
        table[names[-1]] = _value(value.strip())
    return tomlkit.dumps(document)


def build_record(kind: type[T], data: Any) -> T:
    """The record that the document describes, or one sentence: which key, what is allowed, what was got."""
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        raise InvalidInput(_said(kind, error)) from None


def _said(kind: type, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    *above, last = first["loc"] or ("",)
    path, holder = _walked(kind, above)
    where = ".".join([*path, str(last)])
    match first["type"]:
        case "unexpected_keyword_argument":
            allowed = sorted({name for record in _records(holder) for name in record.__pydantic_fields__})
            near = get_close_matches(str(last), allowed, n=1)
            maybe = f" (did you mean {near[0]!r}?)" if near else ""
            return f"There is no key {where!r}{maybe}; allowed are: {', '.join(allowed)}."
        case "missing":
            return f"{where} is missing."
        case "union_tag_not_found":
            kinds = [str(_tag(record)) for record in _records(_walked(kind, first["loc"])[1])]
            return f"{where} needs a kind; there are: {', '.join(kinds)}."
        case "dataclass_type":
            return f"{where or 'The experiment'} must be a table, and got {first['input']!r:.60}."
        case _:
            return describe_error(error).removeprefix(f"{kind.__name__}: ")


def _walked(kind: Any, steps: Iterable[Any]) -> tuple[list[str], Any]:
    """Where these steps lead, as a file would name the way, and the type that lies there.

    Pydantic names the kind of a part as a step of its own, which no file does.
    """
    path = []
    for step in steps:
        records = list(_records(kind))
        tagged = [record for record in records if _tag(record) == step]
        if tagged:
            kind = tagged[0]
            continue
        path.append(str(step))
        holders = [record for record in records if step in record.__pydantic_fields__]
        kind = holders[0].__pydantic_fields__[step].annotation if holders else Any
    return path, kind


def _records(kind: Any) -> Iterable[Any]:
    if isinstance(kind, type) and is_pydantic_dataclass(kind):
        yield kind
    for inner in get_args(kind):
        yield from _records(inner)


def _tag(record: Any) -> Any:
    field = record.__pydantic_fields__.get("kind")
    return field.default if field else None


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _without_none(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(key): _without_none(each) for key, each in value.items() if each is not None}
        case list() | tuple():
            return [_without_none(each) for each in value]
        case _:
            return value
