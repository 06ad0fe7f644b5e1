"""An entry of the catalog: its function, the paper it comes from, and all that the function itself says of it."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.dataclasses import is_pydantic_dataclass

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.privacy.release import Release

DIMENSION = 1000
SAMPLE = Population(examples=(100,) * 10)  # whom an algorithm protects, and from whom, doesn't hang on how many


@dataclass(frozen=True)
class Argument:
    """One argument of a recipe, as a file writes it; `default` is plain data, and None stands for leaving it out."""

    name: str
    kind: str
    required: bool
    default: Any


@dataclass(frozen=True)
class Recipe:
    """A function that composes an algorithm; `example` are arguments with which it runs, noise apart."""

    function: Callable[..., Algorithm]
    paper: str = ""  # its number; empty for a baseline that comes from elsewhere
    example: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **arguments: Any) -> Algorithm:
        """The algorithm of these arguments, as a file has them: a table is a part, and nothing passes for another."""
        hints = get_type_hints(self.function, include_extras=True)
        given = {key: _validate_argument(key, hints[key], each) for key, each in arguments.items() if key in hints}
        return self.function(**(arguments | given))

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.function).parameters

    @property
    def summary(self) -> str:
        """The first sentence of what it says of itself."""
        first, _, _ = self.description.partition("\n\n")
        return re.split(r"(?<=[^.]\.)\s(?=[A-Z])", " ".join(first.split()), maxsplit=1)[0]

    @property
    def description(self) -> str:
        return inspect.getdoc(self.function) or ""

    @property
    def arguments(self) -> list[Argument]:
        hints = get_type_hints(self.function, include_extras=True)
        return [
            Argument(name, describe_type(hints[name]), each.default is each.empty, _default(each))
            for name, each in self.parameters.items()
        ]

    @property
    def protects(self) -> list[Release]:
        """What a round of the example releases, which says whom it protects and from whom; nothing without privacy."""
        return self(**self.example).for_population(SAMPLE, DIMENSION).with_noise(1.0).releases(SAMPLE, 0)


def _validate_argument(name: str, hint: Any, value: Any) -> Any:
    """The value, if it is of this kind: `true` is no number, and "no" is not false."""
    if isinstance(value, Mapping):
        return from_plain(hint, value)
    if not is_pydantic_dataclass(type(value)) and not any(_is_instance(each, value) for each in _choices(hint)):
        wanted = re.sub(r"(whole number|(?<!whole )number|list|table)", r"a \1", describe_type(hint))
        raise InvalidInput(f"algorithm.{name} must be {wanted}, and got {value!r:.60}.")
    return value


def _choices(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_instance(hint: Any, value: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, list | tuple) and all(_is_instance(get_args(hint)[0], each) for each in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(hint, type) and isinstance(value, hint)


def describe_type(hint: Any) -> str:
    """A type as a file shows it: `whole number or list`, `"pass" or "minibatch"`, `table of kind sgd or adam`."""
    kinds = list(_part_kinds(hint))
    listed = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)
    return " or ".join([*dict.fromkeys(_plain_types(hint)), *([f"table of kind {listed}"] if kinds else [])])


def _plain_types(hint: Any) -> Iterator[str]:
    """What is no part: numbers, words, lists."""
    origin = get_origin(hint)
    if origin is Literal:
        yield from (f'"{each}"' for each in get_args(hint))
    elif isinstance(origin, type) and issubclass(origin, Sequence):
        yield "list"
    elif origin is Annotated:
        yield from _plain_types(get_args(hint)[0])
    elif origin is not None:  # a union
        yield from (word for each in get_args(hint) for word in _plain_types(each))
    elif hint is not NoneType and not is_pydantic_dataclass(hint):
        yield {bool: "true or false", int: "whole number", float: "number", str: "text"}.get(hint, str(hint))


def _part_kinds(hint: Any) -> Iterator[str]:
    """The kinds of part that fit here, where it is a place for parts."""
    if isinstance(hint, type) and is_pydantic_dataclass(hint):
        yield vars(hint)["__pydantic_fields__"]["kind"].default
    elif get_origin(hint) is not Literal:
        yield from (kind for each in get_args(hint) for kind in _part_kinds(each))


def _default(parameter: inspect.Parameter) -> Any:
    default = None if parameter.default is parameter.empty else parameter.default
    return to_plain(default) if is_pydantic_dataclass(type(default)) else default
