"""A user's own code, named in a file: `net.py:Net` or `package.module:Net`, from this machine only."""

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Annotated, Any

from pydantic import BeforeValidator
from torch import nn

from discreet.errors import InvalidInput

REFERENCE = re.compile(r"(?P<place>[^:]+(:[\\/][^:]+)?):(?P<name>[^\W\d]\w*)")  # a drive letter may have its colon
FILE_MODULE_PREFIX = "discreet_own_"  # how modules are called that were read from a file


def _check_reference(value: Any) -> str:
    if not isinstance(value, str) or not REFERENCE.fullmatch(value) or "://" in value:
        raise ValueError(f"must be file.py:Name or package.module:Name on this machine, and got {value!r}")
    return value


Reference = Annotated[str, BeforeValidator(_check_reference)]


def build_module(
    reference: str, arguments: dict[str, Any], folder: Path | None = None, offered: dict[str, Any] | None = None
) -> nn.Module:
    """The nn.Module that the named class or function makes; it gets what is `offered` if it asks for it by name."""
    make = load_object(reference, folder)
    try:
        made = make(**arguments, **_accepted_arguments(make, offered or {}))
    except TypeError as error:
        raise InvalidInput(
            f"{reference} can't be made from {sorted(arguments) or 'no arguments'}: {error}.",
            fix="Give what it needs as arguments = { name = value }.",
        ) from error
    if not isinstance(made, nn.Module):
        raise InvalidInput(f"{reference} must make a torch.nn.Module, and made {type(made).__name__}.")
    return made


def _accepted_arguments(make: Any, offered: dict[str, Any]) -> dict[str, Any]:
    try:
        names = inspect.signature(make).parameters.keys()
    except ValueError:  # what is written in C may not say
        return {}
    return {name: value for name, value in offered.items() if name in names}


def load_object(reference: str, folder: Path | None = None) -> Any:
    """The class or function that `file.py:Name` or `module:Name` names; files are looked up from `folder`."""
    try:
        found = REFERENCE.fullmatch(_check_reference(reference))
    except ValueError as error:
        raise InvalidInput(f"{error}.") from None
    assert found is not None
    place, name = found["place"], found["name"]
    module = _import_file((folder or Path()) / place) if place.endswith(".py") else _import_module(place)
    try:
        return getattr(module, name)
    except AttributeError:
        raise InvalidInput(f"{place} has no {name!r}.", fix="Check the name after the colon.") from None


def modules_from_files() -> list[ModuleType]:
    """The modules that were read from files so far, which no other process could import by their names."""
    return [module for name, module in sys.modules.items() if name.startswith(FILE_MODULE_PREFIX)]


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.", fix="Give its path from where the command runs.")
    name = f"{FILE_MODULE_PREFIX}{hashlib.blake2b(str(path.resolve()).encode(), digest_size=8).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceOnlyLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look themselves up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file may fail in any way
        del sys.modules[name]
        raise InvalidInput(f"{path} can't be imported: {type(error).__name__}: {error}.") from error
    return module


class _SourceOnlyLoader(SourceFileLoader):
    """Runs what stands in the file, and never what lies compiled in `__pycache__`: that may be other code."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidInput(
            f"Module {name!r} can't be imported: {error}.", fix="Install it, or name a file as path/to/file.py:Name."
        ) from error
