"""@part: a frozen, validated, serialisable record; and the strict numbers it is made of."""

import math
import numbers
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeAlias, TypeVar, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Strict, Tag, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass, rebuild_dataclass

from discreet.errors import InvalidInput
from discreet.validation_errors import ONE_FOR_ALL, ONE_FOR_EACH, describe_error

T = TypeVar("T")
PARTS: set[type] = set()  # every class that is a part
PLAIN = frozenset({type(None), bool, int, float, str, tuple, dict, list})


@dataclass_transform(frozen_default=True, kw_only_default=True)
def part(cls: type[T]) -> type[T]:
    """Make `cls` a frozen record whose fields are checked whenever one is built, in Python or from a file.

    A part can't be subclassed: what is certified of it would be believed of whatever the subclass does.
    """
    if any(parent in PARTS for parent in cls.__mro__):
        _refuse_subclass(cls)
    record: Any = dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))(cls)
    PARTS.add(record)
    record.__init_subclass__ = classmethod(_refuse_subclass)
    return _translate_errors(record)  # type: ignore[no-any-return]


def _refuse_subclass(subclass: type, /, **more: Any) -> None:
    parents = ", ".join(parent.__name__ for parent in subclass.__mro__[1:] if parent in PARTS)
    raise InvalidInput(
        f"{subclass.__name__} is a subclass of {parents}, and a guarantee would be certified for what {parents} does, "
        "not for what the subclass does.",
        fix=f"Use {parents} itself, with other fields.",
    )


def complete_references(*kinds: type) -> None:
    """Finish parts that name each other before both exist; pydantic would do so later, and lose our sentences."""
    for kind in kinds:
        rebuild_dataclass(kind, force=True, _parent_namespace_depth=3)
        _translate_errors(kind)


def _translate_errors(record: Any) -> Any:
    """The same class; what is wrong with its fields is said in our words."""
    checked = record.__init__

    def build(self: Any, *args: Any, **fields: Any) -> None:
        try:
            checked(self, *args, **fields)
        except ValidationError as error:
            raise InvalidInput(describe_error(error)) from None
        for name, value in vars(self).items():
            for each in value if isinstance(value, tuple) else (value,):
                check_exact(f"{type(self).__name__}: {name}", each)

    record.__init__ = build
    return record


def check_exact(where: str, value: Any) -> None:
    """Refuse an object that only passes for a part, or whose methods were replaced."""
    kind = type(value)
    if kind in PLAIN:
        return
    if kind not in PARTS:
        if isinstance(value, tuple(PARTS)):
            raise InvalidInput(f"{where} must be a part itself, and got an object of the class {kind.__name__}.")
        return
    replaced = [name for name in vars(value) if callable(getattr(kind, name, None))]
    if replaced:
        raise InvalidInput(f"{where} must be a {kind.__name__} as it is shipped, and its {replaced[0]!r} was replaced.")


def from_plain(kind: Any, data: Any) -> Any:
    """Build a part, or any of a union of parts, from plain data (a parsed TOML or JSON document)."""
    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        raise InvalidInput(describe_error(error)) from None


def to_plain(value: Any) -> Any:
    """The plain data that `read` turns back into an equal part."""
    return _adapter(type(value)).dump_python(value, mode="json")


_adapter: Callable[[Any], TypeAdapter[Any]] = lru_cache(maxsize=256)(TypeAdapter)


def _real(value: Any) -> float:
    """A finite number, and nothing that only looks like one: `True`, "0.5" and NaN all pass a plain float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"must be a number, and got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, and got {number}")
    return number


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValueError(f"must be a whole number, and got {value!r}")
    return int(value)


def _restricted(convert: Callable[[Any], Any], holds: Callable[[Any], bool], allowed: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        number = convert(value)
        if not holds(number):
            raise ValueError(f"must be {allowed}, and got {number}")
        return number

    return BeforeValidator(check)


Real = Annotated[float, BeforeValidator(_real)]
Positive = Annotated[float, _restricted(_real, lambda x: x > 0, "above 0")]
NonNegative = Annotated[float, _restricted(_real, lambda x: x >= 0, "at least 0")]
Rate = Annotated[float, _restricted(_real, lambda x: 0 < x <= 1, "above 0 and at most 1")]
Probability = Annotated[float, _restricted(_real, lambda x: 1e-300 <= x < 1, "at least 1e-300 and below 1")]
Flag = Annotated[bool, Strict()]
Count = Annotated[int, _restricted(_whole, lambda n: 1 <= n <= 10**12, "at least 1 and at most 10^12")]
Index = Annotated[int, _restricted(_whole, lambda n: 0 <= n <= 10**12, "at least 0 and at most 10^12")]
Multiplier = Annotated[float, _restricted(_real, lambda x: 1e-6 <= x <= 1e12, "between 1e-6 and 1e12")]
Moderate = Annotated[float, _restricted(_real, lambda x: 0 <= x <= 1e12, "at least 0 and at most 1e12")]
Variance = Annotated[float, _restricted(_real, lambda x: 1e-6 <= x <= 1e30, "between 1e-6 and 1e30")]
Steps = Annotated[float, _restricted(_real, lambda x: 1 <= x <= 1e15, "between 1 and 1e15 steps of the lattice")]

# One number for all clients, or a list of one for each.
PerClient: TypeAlias = Annotated[
    Annotated[T, Tag(ONE_FOR_ALL)] | Annotated[tuple[T, ...], Field(min_length=1), Tag(ONE_FOR_EACH)],
    Discriminator(lambda value: ONE_FOR_EACH if isinstance(value, list | tuple) else ONE_FOR_ALL),
]
