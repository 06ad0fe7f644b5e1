"""Find tensors that a user's code keeps where a copy of the module doesn't reach: in closures, globals and classes."""

import functools
import gc
import weakref
from collections import deque
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor

from discreet.algorithms.training.shipped_modules import is_shipped_function

PLAIN = (str, bytes, int, float, complex, bool, type(None), ModuleType)


def reachable_tensors(*roots: object) -> dict[int, Tensor]:
    """Return every tensor that the objects refer to, by id, including functions' closures, defaults and globals."""
    tensors: dict[int, Tensor] = {}
    visited: set[int] = set()
    pending = list(roots)
    while pending:
        value = pending.pop()
        if isinstance(value, PLAIN) or id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, Tensor):
            tensors[id(value)] = value
        else:
            pending.extend(_references(value))
    return tensors


def _references(holder: Any) -> Iterator[Any]:
    """Yield the objects that one object refers to."""
    match holder:
        case dict():
            yield from holder.values()
        case list() | tuple() | set() | frozenset() | deque():
            yield from holder
        case FunctionType():
            if not is_shipped_function(holder):
                yield from _function_references(holder)
        case MethodType():
            yield from (holder.__self__, holder.__func__)
        case functools.partial():
            yield from (holder.func, holder.args, holder.keywords)
        case weakref.ref():
            yield holder()
        case functools._lru_cache_wrapper():
            yield from gc.get_referents(holder)
        case type():
            if not _is_shipped_class(holder):
                yield from vars(holder).values()
        case classmethod() | staticmethod():
            yield holder.__func__
        case _:
            yield from _attribute(holder, "__dict__", {}).values()
            yield from (_attribute(holder, name, None) for name in getattr(type(holder), "__slots__", ()))
            yield type(holder)


def _attribute(holder: Any, name: str, default: Any) -> Any:
    """Return an attribute, or the default if there is none or if reading it fails, as for some objects of libraries."""
    try:
        return getattr(holder, name, default)
    except Exception:  # noqa: BLE001 - whatever a library raises there
        return default


def _function_references(function: FunctionType) -> Iterator[Any]:
    """Yield what a function refers to: its closure, its defaults, and the globals that its code names."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the cell is still empty
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from (function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__)


def _is_shipped_class(kind: type) -> bool:
    """Return whether a class comes from an installed package. Those are not searched: they keep only constants."""
    functions = [value for value in vars(kind).values() if isinstance(value, FunctionType)]
    return kind.__module__.split(".")[0] in ("builtins", "torch", "discreet", "numpy", "collections") or (
        bool(functions) and all(is_shipped_function(function) for function in functions)
    )
