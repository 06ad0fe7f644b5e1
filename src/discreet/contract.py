"""Contracts of parts: what a part does, and which of its members a guarantee is computed from."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T", bound=type)
CONTRACTS: "dict[type, Contract]" = {}  # by Protocol
PARTS: set[type] = set()  # all classes that are parts


@dataclass(frozen=True, eq=False)
class Contract:
    """A Protocol, and which of its members declare something that a guarantee rests on.

    Attributes:
        name: What messages call such a part.
        protocol: The Protocol.
        declarations: The declaring members. A subclass of a part must define all of them itself.
        undeclared: Those without a default, each with the value that declares nothing. A user's class defines all of
            these, or none and is never part of a guarantee.
        is_postprocessing: Whether such a part only ever sees what the noise already protects.
    """

    name: str
    protocol: type
    declarations: frozenset[str]
    undeclared: Mapping[str, Any]
    is_postprocessing: bool

    @property
    def required_members(self) -> frozenset[str]:
        """The members that every part must write itself, apart from its declarations."""
        return frozenset(self.protocol.__abstractmethods__) - self.undeclared.keys()  # type: ignore[attr-defined]

    def is_declared_by(self, cls: type) -> bool:
        """Return whether a class that a user wrote declares itself what a guarantee rests on, inheriting none of it."""
        inherits = any(is_shipped(parent) for parent in cls.__mro__)
        return (self.declarations if inherits else self.undeclared.keys()) <= own_names(cls)


def contract(
    name: str, *, defaults: Collection[str] = (), is_postprocessing: bool = False, **undeclared: Any
) -> Callable[[T], T]:
    """Register a Protocol as the contract of a kind of part.

    Args:
        name: What messages call such a part.
        defaults: Declaring members that have a default, which is the refusing value.
        is_postprocessing: Whether such a part only ever sees what the noise already protects.
        **undeclared: The declaring members without a default, each with the value that declares nothing.
    """

    def register(protocol: T) -> T:
        declarations = frozenset({*defaults, *undeclared})
        CONTRACTS[protocol] = Contract(name, protocol, declarations, undeclared, is_postprocessing)
        return protocol

    return register


def contract_of(cls: type) -> Contract | None:
    """Return the contract that a class inherits; None if it inherits none."""
    return next((CONTRACTS[parent] for parent in cls.__mro__ if parent in CONTRACTS), None)


def is_shipped(cls: type) -> bool:
    """Return whether a class is a part of this package."""
    return cls in PARTS and cls.__module__.partition(".")[0] == "discreet"


def own_names(cls: type) -> set[str]:
    """Return the members that a class defines itself or inherits from classes of the user, not from a part."""
    own: set[str] = set()
    for parent in cls.__mro__:
        if is_shipped(parent):
            break
        if parent not in CONTRACTS and parent not in (object, Generic, Protocol):
            own |= vars(parent).keys() | inspect.get_annotations(parent).keys()
    return own
