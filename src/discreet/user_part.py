"""A user's own object as a part of an algorithm: which code it is, its arguments, and whether it declares anything.

The object is wrapped, so that no check of a class takes it for a part of this package. What the wrapped object doesn't
define comes from the default of its contract.
"""

import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from discreet.contract import PARTS, Contract, is_shipped, own_names
from discreet.errors import InvalidInput
from discreet.privacy.wording import join_words
from discreet.trust import Trust
from discreet.user_code import call_factory, find_code, run_code, source_of
from discreet.words import fill

T = TypeVar("T")
RESERVED = ("kind", "sha256")  # keys of a part's table that are not arguments of its class


@dataclass(frozen=True, eq=False)
class UserPart:
    """A user's own part. Before `load_code` it is only a reference: reading a file runs none of the code that it names.

    Attributes:
        contract: What such a part does.
        kind: The class, as `file.py:Class` or `package.module:Class`.
        arguments: Keyword arguments of the class.
        sha256: Digest of the file. None before it is loaded, and for a class that no file defines.
        target: The object itself; None before it is loaded.
    """

    contract: Contract
    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    sha256: str | None = None
    target: Any = None

    def __init_subclass__(cls) -> None:
        raise InvalidInput("A user's own part is wrapped in UserPart itself, never in a subclass of it.")

    @property
    def is_loaded(self) -> bool:
        """Whether the object is there."""
        return self.target is not None

    @property
    def is_declared(self) -> bool:
        """Whether the object declares what a guarantee is computed from."""
        return self.contract.is_declared_by(type(self.target))

    @property
    def title(self) -> str:
        """The part's name on a card: its class and the digest of its file."""
        if self.sha256 is None:
            return fill("own_part.in_python", kind=self.kind)
        return fill("own_part.in_file", kind=self.kind, sha256=self.sha256)

    def table(self) -> dict[str, Any]:
        """Return the part as a file writes it. Arguments that are no plain data are left out."""
        digest = {"sha256": self.sha256} if self.sha256 else {}
        return (
            {"kind": self.kind} | digest | {name: value for name, value in self.arguments.items() if _is_plain(value)}
        )

    def load_code(self, folder: Path, trust: Trust) -> "UserPart":
        """Build the object from the code in this folder.

        Raises:
            UntrustedCode: The code may not run.
            InvalidInput: The code can't be loaded, is not what `sha256` says, or doesn't fulfil the contract.
        """
        if self.is_loaded:
            return self
        code = find_code(self.kind, folder, self.arguments)
        digest = code.files[0].sha256 if code.files else None
        if self.sha256 is not None and digest != self.sha256:
            raise InvalidInput(
                f"The {self.contract.name} {self.kind} has changed: its sha256 is {digest}, and was {self.sha256}.",
                fix="Restore the file, or start a new run with the file as it is now.",
            )
        target = call_factory(self.kind, run_code(code, trust), dict(self.arguments))
        _check(self.contract, self.kind, target)
        return replace(self, sha256=digest, target=target)

    @classmethod
    def wrap(cls, contract: Contract, target: Any) -> "UserPart":
        """Wrap an object that a Python program passes as a part."""
        kind, digest = source_of(type(target))
        _check(contract, kind, target)
        return cls(contract, kind, _constructor_arguments(target, {}), digest, target)

    def with_noise(self, noise_multiplier: Any) -> "UserPart":
        """Return a copy with this noise multiplier if the class takes one and none is chosen yet."""
        if "with_noise" in _defined_names(self.target):
            return self._call("with_noise", self.target.with_noise, noise_multiplier)  # type: ignore[no-any-return]
        if "noise_multiplier" not in _parameters(type(self.target)) or self.arguments.get("noise_multiplier"):
            return self
        arguments = {**self.arguments, "noise_multiplier": noise_multiplier}
        return replace(self, arguments=arguments, target=call_factory(self.kind, type(self.target), arguments))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "target" not in vars(self):
            raise AttributeError(name)
        if not self.is_loaded:
            raise InvalidInput(f"The {self.contract.name} {self.kind} is only named here, and its code is not loaded.")
        value = self._member(name)
        return partial(self._call, name, value) if callable(value) else value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UserPart)
            and (self.contract, self.table()) == (other.contract, other.table())
            and _is_equal(self.target, other.target)
        )

    def __hash__(self) -> int:
        return hash(json.dumps(self.table(), sort_keys=True))

    def _member(self, name: str) -> Any:
        """Return a member of the object; else what declares nothing; else the contract's default."""
        if name in _defined_names(self.target):
            return getattr(self.target, name)
        default = inspect.getattr_static(self.contract.protocol, name, None)
        if name in self.contract.undeclared:
            nothing = self.contract.undeclared[name]
            return (lambda *args, **more: nothing) if isinstance(default, FunctionType) else nothing
        return default.__get__(self) if isinstance(default, FunctionType | property) else getattr(self.target, name)

    def _call(self, name: str, member: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Call a member. A copy of the object that it returns is wrapped like the object itself."""
        try:
            result = member(*args, **more)
        except InvalidInput:
            raise
        except (Exception, SystemExit) as error:  # a user's code may fail in any way, and must not steer the loop
            message = " ".join(str(error).split())[:200].rstrip(".")
            raise InvalidInput(
                f"The {self.contract.name} {self.kind} failed in {name}: {type(error).__name__}: {message}."
            ) from error
        if type(result) is not type(self.target):
            self._check_result(name, result)
            return result
        return replace(self, arguments=_constructor_arguments(result, self.arguments), target=result)

    def _check_result(self, name: str, result: Any) -> None:
        """Refuse a result of another kind than the contract's, as far as that is a class or a tuple."""
        kind, length = _result_kind(self.contract.protocol, name)
        if not isinstance(result, kind) or (length is not None and len(result) != length):
            wanted = getattr(kind, "__name__", "number") if length is None else f"tuple of {length}"
            got = f"an object of the class {type(result).__name__}"
            raise InvalidInput(f"{self.kind}: {name} must return a {wanted}, and returned {got}.")


@lru_cache(maxsize=256)
def _result_kind(protocol: type, name: str) -> tuple[Any, int | None]:
    """Return the class of what a member of a contract returns, and its length if that is a tuple of a fixed length."""
    member = getattr(protocol, name, None)
    try:
        hint = get_type_hints(member).get("return") if isinstance(member, FunctionType) else None
    except NameError:  # a name that is imported for type checkers only
        hint = None
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind is tuple and Ellipsis not in arguments:
        return tuple, len(arguments)
    if kind is float:
        return (int, float), None
    if not isinstance(kind, type) or kind in (NoneType, UnionType) or getattr(kind, "_is_protocol", False):
        return object, None
    return kind, None


def load_user_parts(part: T, folder: Path, trust: Trust, skip: Collection[str] = ()) -> T:
    """Return a part with every user's own part inside it loaded from this folder, except in fields named in `skip`."""
    if isinstance(part, UserPart):
        return cast(T, part.load_code(folder, trust))
    if not is_dataclass(part) or type(part) not in PARTS:
        return part
    before = {each.name: getattr(part, each.name) for each in fields(part)}
    loaded = {name: load_user_parts(value, folder, trust, skip) for name, value in before.items() if name not in skip}
    changed = {name: value for name, value in loaded.items() if value is not before[name]}
    return replace(part, **changed) if changed else part  # type: ignore[type-var]


def user_parts(part: Any) -> list[UserPart]:
    """List the user's own parts inside a part."""
    if isinstance(part, UserPart):
        return [part]
    if isinstance(part, tuple):
        return [inner for item in part for inner in user_parts(item)]
    if type(part) not in PARTS:
        return []
    return [inner for each in fields(part) for inner in user_parts(getattr(part, each.name))]


def _check(contract: Contract, kind: str, target: Any) -> None:
    """Refuse an object that lacks what the contract needs, or that declares only some of it."""
    cls = type(target)
    shipped = tuple(kind for kind in PARTS if is_shipped(kind))
    if isinstance(target, shipped) and not (contract.declarations and contract.is_declared_by(cls)):
        raise InvalidInput(f"A {contract.name} must be a part itself, and got an object of the class {cls.__name__}.")
    defined = _defined_names(target)
    if missing := sorted(contract.required_members - defined):
        raise InvalidInput(
            f"{kind} can't be a {contract.name}: it lacks {join_words(missing)}.",
            fix=f"Write {join_words(missing)} as the contract {contract.protocol.__name__} describes.",
        )
    declared = sorted(contract.undeclared.keys() & defined)
    if declared and (missing := sorted(contract.undeclared.keys() - defined)):
        raise InvalidInput(
            f"{kind} declares {join_words(declared)}, and not {join_words(missing)}.",
            fix="Declare all of them, for a card on its word; or none, for a run without a card.",
        )


def _defined_names(target: Any) -> set[str]:
    """Return the members that the object itself has, and doesn't get from a contract's default."""
    inherited = {name for parent in type(target).__mro__ if is_shipped(parent) for name in vars(parent)}
    return own_names(type(target)) | inherited | getattr(target, "__dict__", {}).keys()


def _is_equal(first: Any, second: Any) -> bool:
    """Return whether two objects are the same, or equal records."""
    return first is second or (is_dataclass(first) and type(first) is type(second) and bool(first == second))


def _parameters(cls: type) -> list[str]:
    return [
        name
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _constructor_arguments(target: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that build an equal object: attributes named as the constructor's parameters."""
    names = [name for name in _parameters(type(target)) if name not in RESERVED]
    return {name: getattr(target, name, known.get(name)) for name in names if name in known or hasattr(target, name)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(item) for name, item in value.items())
    return isinstance(value, str | bool | int | float)
