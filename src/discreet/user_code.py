"""Load a user's own code by the reference `net.py:Net` or `package.module:Net`, from this machine only."""

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Annotated, Any

from pydantic import BeforeValidator
from torch import nn

from discreet.errors import DiscreetError, InvalidInput

REFERENCE = re.compile(r"(?P<location>[^:]+(:[\\/][^:]+)?):(?P<name>[^\W\d]\w*)")  # a Windows drive has a colon too
FILE_MODULE_PREFIX = "discreet_own_"  # of the names of modules that were imported from a file


def check_reference(value: Any) -> str:
    """Return a reference to a user's code, `file.py:Name` or `package.module:Name`; refuse anything else."""
    if not isinstance(value, str) or not REFERENCE.fullmatch(value) or "://" in value:
        raise ValueError(f"must be file.py:Name or package.module:Name on this machine, and got {value!r}")
    return value


Reference = Annotated[str, BeforeValidator(check_reference)]


def kind_tag(value: Any) -> str:
    """Return the `kind` of a record or table, for unions that also take a user's own: "own" if a colon marks it."""
    kind = str(value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None))
    return "own" if ":" in kind else kind


def build_module(
    reference: str, arguments: dict[str, Any], folder: Path | None = None, offered: dict[str, Any] | None = None
) -> nn.Module:
    """Build an nn.Module by calling the class or function that a reference names.

    Args:
        reference: `file.py:Name` or `package.module:Name`.
        arguments: Keyword arguments for the call.
        folder: File names are relative to this folder. Defaults to the current directory.
        offered: More keyword arguments, which are passed if the class or function has parameters of these names.

    Raises:
        InvalidInput: The code can't be loaded or called, or returns something other than an nn.Module.
    """
    factory = load_object(reference, folder)
    module = call_factory(reference, factory, arguments | _accepted_arguments(factory, offered or {}))
    if not isinstance(module, nn.Module):
        raise InvalidInput(f"{reference} must return a torch.nn.Module, and returned {type(module).__name__}.")
    return module


def call_factory(reference: str, factory: Any, arguments: dict[str, Any]) -> Any:
    """Call a user's class or function with keyword arguments.

    Raises:
        InvalidInput: It takes other arguments, or fails.
    """
    try:
        return factory(**arguments)
    except DiscreetError:
        raise
    except TypeError as error:
        abstract = sorted(getattr(factory, "__abstractmethods__", ()))
        if abstract:
            raise InvalidInput(f"{reference} lacks {', '.join(abstract)}.", fix="Write them in the class.") from error
        raise InvalidInput(
            f"{reference} can't be called with {sorted(arguments) or 'no arguments'}: {error}.",
            fix=f"Give it the arguments that it takes: {_describe_parameters(factory)}.",
        ) from error
    except (Exception, SystemExit) as error:  # a user's code may fail in any way
        raise InvalidInput(f"{reference} failed: {type(error).__name__}: {error}.") from error


def _describe_parameters(factory: Any) -> str:
    try:
        return ", ".join(inspect.signature(factory).parameters) or "none"
    except (TypeError, ValueError):  # what can't be called, or is written in C
        return "unknown"


def read_source(reference: str, folder: Path | None = None) -> bytes | None:
    """Return the file that a reference names, without running it; None if there is no such file."""
    location = reference.rpartition(":")[0]
    if location.endswith(".py"):
        path = (folder or Path()) / location
    else:
        try:
            spec = importlib.util.find_spec(location.partition(".")[0]) and importlib.util.find_spec(location)
        except (ImportError, TypeError, ValueError):
            return None
        if not spec or not spec.origin:
            return None
        path = Path(spec.origin)
    return path.read_bytes() if path.is_file() else None


def source_of(cls: type) -> tuple[str, str | None]:
    """Return the reference of a class that a Python program uses, and the SHA-256 of its file if there is one."""
    try:
        path = Path(inspect.getfile(cls))
    except (TypeError, OSError):  # typed into an interpreter
        return f"python:{cls.__name__}", None
    if not path.is_file():
        return f"python:{cls.__name__}", None
    return f"{path.name}:{cls.__name__}", hashlib.sha256(path.read_bytes()).hexdigest()


def _accepted_arguments(factory: Any, offered: dict[str, Any]) -> dict[str, Any]:
    """Return the offered arguments that the class or function has parameters for."""
    try:
        names = inspect.signature(factory).parameters.keys()
    except ValueError:  # code written in C may have no signature
        return {}
    return {name: value for name, value in offered.items() if name in names}


def load_object(reference: str, folder: Path | None = None, content: bytes | None = None) -> Any:
    """Load the class or function that `file.py:Name` or `package.module:Name` names.

    Args:
        folder: File names are relative to this folder. Defaults to the current directory.
        content: What to run as the content of the file. Defaults to what is in the file now.

    Raises:
        InvalidInput: The file, module or name doesn't exist, or can't be imported.
    """
    try:
        match = REFERENCE.fullmatch(check_reference(reference))
    except ValueError as error:
        raise InvalidInput(f"{error}.") from None
    assert match is not None
    location, name = match["location"], match["name"]
    is_file = location.endswith(".py")
    module = _import_file((folder or Path()) / location, content) if is_file else _import_module(location)
    try:
        return getattr(module, name)
    except AttributeError:
        raise InvalidInput(f"{location} has no {name!r}.", fix="Check the name after the colon.") from None


def code_places(value: Any) -> Iterator[str]:
    """Yield what is before the colon of each `file.py:Name` in plain data."""
    if isinstance(value, str):
        if match := REFERENCE.fullmatch(value):
            yield match["location"]
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from code_places(item)


def modules_from_files() -> list[ModuleType]:
    """Return the modules imported from files so far. Other processes can't import them by name."""
    return [module for name, module in sys.modules.items() if name.startswith(FILE_MODULE_PREFIX)]


def _import_file(path: Path, content: bytes | None = None) -> ModuleType:
    """Import a file as a module. The same file always has the same module name."""
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.", fix="Give its path relative to the experiment's file.")
    name = f"{FILE_MODULE_PREFIX}{hashlib.blake2b(str(path.resolve()).encode(), digest_size=8).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceOnlyLoader(name, str(path), content))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look modules up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's file may fail in any way
        del sys.modules[name]
        if isinstance(error, DiscreetError):
            raise
        alone = "Such a file may import installed packages, and no file beside it." if _is_beside(error, path) else ""
        raise InvalidInput(f"{path} can't be imported: {type(error).__name__}: {error}.", fix=alone) from error
    return module


def _is_beside(error: BaseException, path: Path) -> bool:
    """Return whether an import failed because the module is only a file beside this one."""
    return isinstance(error, ModuleNotFoundError) and (path.parent / f"{error.name}.py").is_file()


class _SourceOnlyLoader(SourceFileLoader):
    """Run the source in the file, or what was read from it, and never compiled code in `__pycache__`."""

    def __init__(self, fullname: str, path: str, content: bytes | None) -> None:
        super().__init__(fullname, path)
        self._content = content

    def get_code(self, fullname: str) -> CodeType:
        content = self.get_data(self.path) if self._content is None else self._content
        return self.source_to_code(content, self.path)


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (ImportError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"Module {name!r} can't be imported: {error}.", fix="Install it, or name a file as path/to/file.py:Name."
        ) from error
