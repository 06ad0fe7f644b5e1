"""Where a user's function, class or object was defined: its module, its file and its package."""

import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any


def source_module(value: Any) -> str:
    """Return the name of the module that defines it. Decorators copy `__module__` from one function to another."""
    if isinstance(value, FunctionType):
        named = value.__globals__.get("__name__")
    else:
        named = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return named if isinstance(named, str) else type(value).__module__


def source_file(value: Any) -> Path | None:
    """Return the file that defines it."""
    if isinstance(value, FunctionType):
        named = value.__globals__.get("__file__")
    else:
        named = getattr(
            value if isinstance(value, ModuleType) else sys.modules.get(source_module(value)), "__file__", None
        )
    return Path(named) if isinstance(named, str) else None


def package_name(value: Any) -> str:
    """Return the outermost package of the module that defines it."""
    return source_module(value).partition(".")[0]


def qualified_name(value: Any) -> str:
    """Return its module, its qualified name, and the version of its package.

    This package has none here: its version names the commit, and a fingerprint has a digest of its source.
    """
    name, package = getattr(value, "__qualname__", ""), package_name(value)
    version = "" if package == "discreet" else getattr(sys.modules.get(package), "__version__", "")
    return f"{source_module(value)} {name} {version}".strip()
