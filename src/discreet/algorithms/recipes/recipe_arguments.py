"""The arguments of a recipe as an experiment file writes them: their types in words, and their validation."""

import inspect
import numbers
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.dataclasses import is_pydantic_dataclass

from discreet.algorithms.population import Population
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.validation_errors import describe_value

DIMENSION = 1000
SAMPLE = Population(examples=(100,) * 10)  # whom an algorithm protects doesn't depend on these sizes

LARGEST = 10**300


@dataclass(frozen=True)
class Argument:
    """One argument of a recipe.

    Attributes:
        name: Its name.
        kind: Its type in words.
        required: Whether a file must give it.
        default: Its default as plain data; None if it may be left out.
    """

    name: str
    kind: str
    required: bool
    default: Any


def list_arguments(function: Callable[..., Any]) -> list[Argument]:
    """List the arguments of a recipe's function."""
    hints = get_type_hints(function, include_extras=True)
    return [
        Argument(name, describe_type(hints[name]), parameter.default is parameter.empty, _default(parameter))
        for name, parameter in inspect.signature(function).parameters.items()
    ]


def validate_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with tables turned into parts. Unknown names are left for the function to refuse.

    Raises:
        InvalidInput: If a value has the wrong type.
    """
    hints = get_type_hints(function, include_extras=True)
    return {
        name: _validate_argument(name, hints[name], value) if name in hints else value
        for name, value in arguments.items()
    }


def check_plain_arguments(title: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse numbers, words and switches of a wrong type. Parts check their own fields.

    Raises:
        InvalidInput: If a value has the wrong type.
    """
    hints = get_type_hints(function, include_extras=True)
    for name, value in arguments.items():
        choices = _choices(hints[name])
        if all(map(_is_plain, choices)) and not any(_is_instance(choice, value) for choice in choices):
            raise InvalidInput(
                f"{title}: {name} must be {_describe_wanted(hints[name])}, and got {describe_value(value)}."
            )


def describe_type(hint: Any) -> str:
    """Describe a type in words: `whole number or list`, `"pass" or "minibatch"`, `table of kind sgd or adam`."""
    kinds = list(_part_kinds(hint))
    listed = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)
    return " or ".join([*dict.fromkeys(_plain_types(hint)), *([f"table of kind {listed}"] if kinds else [])])


def _validate_argument(name: str, hint: Any, value: Any) -> Any:
    """Return the value if it fits the type: `true` is not a number, and "no" is not false."""
    if isinstance(value, Mapping):
        return from_plain(hint, value)
    if not is_pydantic_dataclass(type(value)) and not any(_is_instance(choice, value) for choice in _choices(hint)):
        raise InvalidInput(f"algorithm.{name} must be {_describe_wanted(hint)}, and got {describe_value(value)}.")
    return value


def _describe_wanted(hint: Any) -> str:
    return re.sub(r"(whole number|(?<!whole )number|list|table)", r"a \1", describe_type(hint))


def _is_plain(hint: Any) -> bool:
    """Whether values of this type are numbers, words, switches, or lists of them."""
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Sequence):
        return all(map(_is_plain, _choices(get_args(hint)[0])))
    return get_origin(hint) is Literal or hint in (int, float, bool, str, type(None))


def _choices(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_instance(hint: Any, value: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return isinstance(value, str | int | None) and value in get_args(hint)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, list | tuple) and all(_is_instance(get_args(hint)[0], item) for item in value)
    if hint is float:
        return isinstance(value, numbers.Real) and _is_ordinary(value)
    if hint is int:
        return isinstance(value, numbers.Integral) and _is_ordinary(value)
    return isinstance(hint, type) and isinstance(value, hint)


def _is_ordinary(number: Any) -> bool:
    """Whether it is no bool, and no whole number with which floating-point numbers can't be computed."""
    return not isinstance(number, bool) and not (isinstance(number, int) and abs(number) > LARGEST)


def _plain_types(hint: Any) -> Iterator[str]:
    """Name the types that are not parts: numbers, texts, lists."""
    origin = get_origin(hint)
    if origin is Literal:
        yield from (f'"{value}"' for value in get_args(hint))
    elif isinstance(origin, type) and issubclass(origin, Sequence):
        yield "list"
    elif origin is Annotated:
        yield from _plain_types(get_args(hint)[0])
    elif origin is not None:  # a union
        yield from (word for choice in get_args(hint) for word in _plain_types(choice))
    elif hint is not NoneType and not is_pydantic_dataclass(hint):
        yield {bool: "true or false", int: "whole number", float: "number", str: "text"}.get(hint, str(hint))


def _part_kinds(hint: Any) -> Iterator[str]:
    """Name the kinds of part that are allowed, if parts are."""
    if isinstance(hint, type) and is_pydantic_dataclass(hint):
        yield vars(hint)["__pydantic_fields__"]["kind"].default
    elif get_origin(hint) is not Literal:
        yield from (kind for choice in get_args(hint) for kind in _part_kinds(choice))


def _default(parameter: inspect.Parameter) -> Any:
    default = None if parameter.default is parameter.empty else parameter.default
    return to_plain(default) if is_pydantic_dataclass(type(default)) else default
