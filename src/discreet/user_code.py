"""Load a user's own code by the reference `net.py:Net` or `package.module:Net`, from this machine only.

`run_code` is the one place of the package that runs code which an experiment names, and it needs a `Trust`. Everything
else here only reads files: packages that contain a module are not imported to find it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Annotated, Any

from pydantic import BeforeValidator

from discreet.errors import DiscreetError, InvalidInput
from discreet.lazy_torch import nn
from discreet.logs import get_log
from discreet.module_files import ModuleFiles, is_installed, source_of_module
from discreet.trust import CodeFile, OwnCode, Trust

log = get_log(__name__)

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


def build_module(code: OwnCode, arguments: dict[str, Any], trust: Trust, offered: dict[str, Any]) -> nn.Module:
    """Build an nn.Module by calling the class or function that a reference names.

    Args:
        code: The code, from `find_code`.
        arguments: Keyword arguments for the call.
        trust: What may run.
        offered: More keyword arguments, which are passed if the class or function has parameters of these names.

    Raises:
        UntrustedCode: The code may not run.
        InvalidInput: The code can't be loaded or called, or returns something other than an nn.Module.
    """
    from torch import nn

    factory = run_code(code, trust)
    module = call_factory(code.reference, factory, arguments | _accepted_arguments(factory, offered))
    if not isinstance(module, nn.Module):
        raise InvalidInput(f"{code.reference} must return a torch.nn.Module, and returned {type(module).__name__}.")
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


def find_code(reference: str, folder: Path, settings: Mapping[str, Any] | None = None) -> OwnCode:
    """Read the code that `file.py:Name` or `package.module:Name` names, without running any of it.

    Args:
        folder: File names are relative to this folder.
        settings: The table in which the reference is written, without its kind.

    Raises:
        InvalidInput: The file or module doesn't exist.
    """
    location, _ = _split_reference(reference)
    if location.endswith(".py"):
        return replace(find_file_code(folder / location), reference=reference, settings=settings or {})
    source = source_of_module(location)
    if source is not None and not is_installed(source):
        files = ModuleFiles()
        files.add_module(location)
        named_first = sorted(files.files, key=lambda file: file.module != location)
        return OwnCode(reference, tuple(named_first), settings or {})
    content = source.read_bytes() if source is not None and source.is_file() else None
    only = () if source is None or content is None else (CodeFile(source, content, location),)
    return OwnCode(reference, only, settings or {}, is_installed=True)


def find_file_code(path: Path) -> OwnCode:
    """Read a Python file, and the user's files that it imports, without running any of it."""
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.", fix="Give its path relative to the experiment's file.")
    files = ModuleFiles()
    files.add_file(path)
    return OwnCode(path.name, tuple(files.files))


def run_code(code: OwnCode, trust: Trust) -> Any:
    """Run code, and return the class or function that its reference names. The bytes that were read are run.

    Args:
        code: The code, from `find_code`.
        trust: What may run.

    Raises:
        UntrustedCode: The code may not run; none of it was run.
        InvalidInput: The code can't be imported, or has no such name.
    """
    trust.check(code)
    location, name = _split_reference(code.reference)
    if not code.is_installed:
        _serve_files(code.files)
    module = _import_file(code.files[0]) if location.endswith(".py") else _import_module(location)
    try:
        return getattr(module, name)
    except AttributeError:
        raise InvalidInput(f"{location} has no {name!r}.", fix="Check the name after the colon.") from None


def load_object(reference: str, folder: Path, trust: Trust) -> Any:
    """Find and run the code that a reference names, and return its class or function."""
    return run_code(find_code(reference, folder), trust)


def _split_reference(reference: str) -> tuple[str, str]:
    try:
        match = REFERENCE.fullmatch(check_reference(reference))
    except ValueError as error:
        raise InvalidInput(f"{error}.") from None
    assert match is not None
    return match["location"], match["name"]


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


def _import_file(file: CodeFile) -> ModuleType:
    """Import a file as a module. The same file always has the same module name."""
    path = file.path
    name = f"{FILE_MODULE_PREFIX}{hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_ContentLoader(name, file))
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


class _ContentLoader(SourceFileLoader):
    """Runs what was read from a file: neither what is in it by now, nor compiled code in `__pycache__`."""

    def __init__(self, fullname: str, file: CodeFile) -> None:
        super().__init__(fullname, str(file.path))
        self._content = file.content

    def get_code(self, fullname: str) -> CodeType:
        log.info("own code loaded", path=Path(self.path), sha256=hashlib.sha256(self._content).hexdigest())
        return self.source_to_code(self._content, self.path)


class _ContentFinder(MetaPathFinder):
    """Finds modules among files that were read, each once: a later reload reads the file again."""

    def __init__(self, files: Sequence[CodeFile]) -> None:
        self.files = {file.module: file for file in files}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self.files.pop(fullname, None)
        if file is None:
            return None
        inner = [str(file.path.parent)] if file.path.stem == "__init__" else None
        loader = _ContentLoader(fullname, file)
        return importlib.util.spec_from_file_location(
            fullname, file.path, loader=loader, submodule_search_locations=inner
        )


def _serve_files(files: Sequence[CodeFile]) -> None:
    """Let the first import of each of the user's modules find what was read, now or when a function imports it."""
    new = [file for file in files if file.module not in ("", *sys.modules) and file.path.suffix == ".py"]
    before = [finder for finder in sys.meta_path if isinstance(finder, _ContentFinder)]
    for finder in before:
        for file in new:
            finder.files.pop(file.module, None)
        if not finder.files:
            sys.meta_path.remove(finder)
    if new:
        sys.meta_path.insert(0, _ContentFinder(new))


def _import_module(name: str) -> ModuleType:
    log.info("own package imported", package=name)
    try:
        return importlib.import_module(name)
    except DiscreetError:
        raise
    except (Exception, SystemExit) as error:  # a user's module may fail in any way
        raise InvalidInput(
            f"Module {name!r} can't be imported: {error}.", fix="Install it, or name a file as path/to/file.py:Name."
        ) from error
