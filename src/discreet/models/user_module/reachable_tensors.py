"""Tensors that a user's code keeps where a copy of the module doesn't reach: in closures, globals and classes."""

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
    """By id, every tensor that the objects hold, their functions' closures, defaults and globals included."""
    found: dict[int, Tensor] = {}
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        each = waiting.pop()
        if isinstance(each, PLAIN) or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Tensor):
            found[id(each)] = each
        else:
            waiting.extend(_references(each))
    return found


def _references(holder: Any) -> Iterator[Any]:
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
            yield from getattr(holder, "__dict__", {}).values()
            yield from (getattr(holder, name, None) for name in getattr(type(holder), "__slots__", ()))
            yield type(holder)


def _function_references(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from (function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__)


def _is_shipped_class(kind: type) -> bool:
    """Classes of installed packages are not looked into: theirs are constants."""
    functions = [value for value in vars(kind).values() if isinstance(value, FunctionType)]
    return kind.__module__.split(".")[0] in ("builtins", "torch", "discreet", "numpy", "collections") or (
        bool(functions) and all(is_shipped_function(each) for each in functions)
    )
