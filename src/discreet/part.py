"""@part makes a frozen, validated, serialisable record; and the strict number types of its fields."""

import math
import numbers
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeAlias, TypeVar, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Strict, Tag, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass, rebuild_dataclass

from discreet.contract import PARTS, contract_of
from discreet.errors import InvalidInput
from discreet.plain_signature import RecordSignature
from discreet.validation_errors import ONE_FOR_ALL, ONE_FOR_EACH, describe_error, describe_value

T = TypeVar("T")
_MEMBERS: dict[type, dict[str, Any]] = {}  # the members of every part as they were defined
LEAST = 1e-300  # below 2.3e-308 a floating-point number has fewer digits, and accounting would return NaN
PLAIN = frozenset({type(None), bool, int, float, str, tuple, dict, list})


@dataclass_transform(frozen_default=True, kw_only_default=True)
def part(cls: type[T]) -> type[T]:
    """Make `cls` a frozen record whose fields are validated when it is built, in Python or from a file.

    A part can't be subclassed, since the guarantee of the part would be reported for whatever the subclass does; unless
    the subclass declares everything itself that a guarantee rests on. It is then a user's own part.

    Raises:
        InvalidInput: If `cls` is a subclass of a part; and from the record, if a field is not valid.

    Example:
        >>> @part
        ... class Clip:
        ...     norm: Positive
        >>> Clip(norm=0.5)
        Clip(norm=0.5)
    """
    if any(parent in PARTS for parent in cls.__mro__):
        raise _subclass_error(cls)
    record: Any = dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))(cls)
    PARTS.add(record)
    _MEMBERS[record] = {name: value for name, value in vars(record).items() if not name.startswith("__")}
    record.__init_subclass__ = classmethod(_check_subclass)
    return _translate_errors(record)  # type: ignore[no-any-return]


def _check_subclass(subclass: type, /, **more: Any) -> None:
    """Refuse a subclass of a part that doesn't declare itself what a guarantee is computed from."""
    contract = contract_of(subclass)
    if contract is None or not contract.declarations or not contract.is_declared_by(subclass):
        raise _subclass_error(subclass)


def _subclass_error(subclass: type) -> InvalidInput:
    parents = ", ".join(parent.__name__ for parent in subclass.__mro__[1:] if parent in PARTS)
    contract = contract_of(subclass)
    members = sorted(contract.declarations) if contract else []
    declare = f", or declare in {subclass.__name__}: {', '.join(members)}" if members else ""
    return InvalidInput(
        f"{subclass.__name__} is a subclass of {parents}, and a guarantee would be certified for what {parents} does, "
        "not for what the subclass does.",
        fix=f"Use {parents} itself, with other fields{declare}.",
    )


def complete_references(*kinds: type) -> None:
    """Complete parts that refer to each other. Pydantic would do so later, and lose our error messages."""
    for kind in kinds:
        rebuild_dataclass(kind, force=True, _parent_namespace_depth=3)
        _translate_errors(kind)


def _translate_errors(record: Any) -> Any:
    """Make the class report invalid fields as `InvalidInput`, in our words."""
    validate = record.__init__

    def build(self: Any, *args: Any, **fields: Any) -> None:
        try:
            validate(self, *args, **fields)
        except ValidationError as error:
            raise InvalidInput(describe_error(error)) from None
        for name, value in vars(self).items():
            for item in value if isinstance(value, tuple) else (value,):
                check_exact(f"{type(self).__name__}: {name}", item)

    build.__name__ = "__init__"
    record.__init__ = build
    record.__signature__ = RecordSignature(record)
    return record


def check_exact(where: str, value: Any) -> None:
    """Refuse an object that only looks like a part, or whose methods or constants were replaced, here or in its class.

    Args:
        where: Where the object is, for the message.
        value: The object.

    Raises:
        InvalidInput: If it is not exactly a part as shipped.
    """
    kind = type(value)
    if kind in PLAIN:
        return
    if kind not in PARTS:
        if isinstance(value, tuple(PARTS)):
            raise InvalidInput(f"{where} must be a part itself, and got an object of the class {kind.__name__}.")
        return
    replaced = sorted(vars(value).keys() - kind.__dataclass_fields__.keys())
    if contract_of(kind) is not None:
        replaced += [name for name, member in _MEMBERS[kind].items() if vars(kind).get(name) is not member]
    if replaced:
        raise InvalidInput(f"{where} must be a {kind.__name__} as it is shipped, and its {replaced[0]!r} was replaced.")


def from_plain(kind: Any, data: Any) -> Any:
    """Build a part, or one of a union of parts, from plain data such as a parsed TOML or JSON document.

    Raises:
        InvalidInput: If the data is not valid.
    """
    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        raise InvalidInput(describe_error(error)) from None


def check_value(name: str, kind: Any, value: Any) -> Any:
    """Return the value of an argument as this kind, such as `Count` or a `Literal`, or refuse it by its name.

    Raises:
        InvalidInput: If the value is not valid.
    """
    try:
        return from_plain(kind, value)
    except InvalidInput as error:
        raise InvalidInput(f"{name} {error.problem}") from None


def to_plain(value: Any) -> Any:
    """Return the plain data from which `from_plain` builds an equal part."""
    return _adapter(type(value)).dump_python(value, mode="json")


_adapter: Callable[[Any], TypeAdapter[Any]] = lru_cache(maxsize=256)(TypeAdapter)


def _real(value: Any) -> float:
    """Return a finite number. `True`, "0.5" and NaN, which a plain float accepts, are refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"must be a number, and got {describe_value(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, and got {number}")
    return number


def _positive(value: Any) -> float:
    """Return a number, and refuse one so near to 0 that a floating-point number holds few of its digits."""
    number = _real(value)
    if 0 < number < LEAST:
        raise ValueError(f"must be at least {LEAST}, and got {number}")
    return number


def _whole_number(value: Any) -> int:
    """Return a whole number; a bool or a float is refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValueError(f"must be a whole number, and got {describe_value(value)}")
    return int(value)


def _number_where(convert: Callable[[Any], Any], holds: Callable[[Any], bool], allowed: str) -> BeforeValidator:
    """Convert a value and refuse it unless `holds`; `allowed` describes what is allowed."""

    def check(value: Any) -> Any:
        number = convert(value)
        if not holds(number):
            raise ValueError(f"must be {allowed}, and got {describe_value(number)}")
        return number

    return BeforeValidator(check)


SMALLEST_NORM, LARGEST_NORM = 1e-30, 1e30  # in which float32 holds a clipped number and its inverse with all digits

Real = Annotated[float, BeforeValidator(_real)]
WholeNumber = Annotated[int, BeforeValidator(_whole_number)]
Number: TypeAlias = Annotated[int, BeforeValidator(_whole_number)] | Annotated[float, BeforeValidator(_real)]
ClipNorm = Annotated[
    float, _number_where(_real, lambda x: SMALLEST_NORM <= x <= LARGEST_NORM, "between 1e-30 and 1e30")
]
Positive = Annotated[float, _number_where(_positive, lambda x: x > 0, "above 0")]
NonNegative = Annotated[float, _number_where(_real, lambda x: x >= 0, "at least 0")]
Rate = Annotated[float, _number_where(_positive, lambda x: 0 < x <= 1, "above 0 and at most 1")]
Share = Annotated[float, _number_where(_real, lambda x: 0 <= x < 1, "at least 0 and below 1")]
Probability = Annotated[float, _number_where(_real, lambda x: 1e-300 <= x < 1, "at least 1e-300 and below 1")]
Flag = Annotated[bool, Strict()]
Count = Annotated[int, _number_where(_whole_number, lambda n: 1 <= n <= 10**12, "at least 1 and at most 10^12")]
Category = Annotated[int, _number_where(_whole_number, lambda n: 2 <= n <= 10**12, "at least 2 and at most 10^12")]
Round = Annotated[int, _number_where(_whole_number, lambda n: -1 <= n <= 10**12, "at least -1 and at most 10^12")]
Index = Annotated[int, _number_where(_whole_number, lambda n: 0 <= n <= 10**12, "at least 0 and at most 10^12")]
Multiplier = Annotated[float, _number_where(_real, lambda x: 1e-6 <= x <= 1e12, "between 1e-6 and 1e12")]
Moderate = Annotated[float, _number_where(_real, lambda x: 0 <= x <= 1e12, "at least 0 and at most 1e12")]
Variance = Annotated[float, _number_where(_real, lambda x: 1e-6 <= x <= 1e30, "between 1e-6 and 1e30")]
Steps = Annotated[float, _number_where(_real, lambda x: 1 <= x <= 1e15, "between 1 and 1e15 steps of the lattice")]

# One value for all clients, or a list of one value for each.
PerClient: TypeAlias = Annotated[
    Annotated[T, Tag(ONE_FOR_ALL)] | Annotated[tuple[T, ...], Field(min_length=1), Tag(ONE_FOR_EACH)],
    Discriminator(lambda value: ONE_FOR_EACH if isinstance(value, list | tuple) else ONE_FOR_ALL),
]
