"""The source files that a user's own code imports, directly or through other files of the user's.

Imports are read from bytecode and resolved without running anything, so a module that a function imports only when it
is called counts before the call as well. Installed packages, the standard library and discreet itself are left out;
`__main__` too, since the script that resumes a run differs from the one that started it.
"""

import dis
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType

from discreet.trust import UNREADABLE, CodeFile

INSTALLED = {"site-packages", "dist-packages"}
LIBRARIES = ("discreet", "torch", "numpy")


@cache
def _library_folders() -> frozenset[Path]:
    """Return the folders of the standard library, discreet, torch and numpy, without importing them."""
    origins = (_find_spec(name) for name in LIBRARIES)
    return frozenset(
        [
            *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")),
            *(Path(spec.origin).resolve().parent for spec in origins if spec is not None and spec.origin),
        ]
    )


@cache
def is_installed(file: Path) -> bool:
    """Whether the file belongs to an installed package, the standard library, discreet, torch or numpy."""
    return bool(INSTALLED & {*file.parts}) or is_library(file)


@cache
def is_library(file: Path) -> bool:
    """Whether the file belongs to the standard library, discreet, torch or numpy."""
    return not _library_folders().isdisjoint(file.resolve().parents)


class ModuleFiles:
    """Collects the user's source files, starting from modules, files and code, and following their imports."""

    def __init__(self) -> None:
        self.files: list[CodeFile] = []
        self._paths: set[Path] = set()
        self._seen: set[str] = set()

    def lines(self) -> list[str]:
        """Return a line for each file with its name and its digest, in an order that does not depend on the folder."""
        return sorted(f"file {file.path.name} {file.sha256}" for file in self.files)

    def add_module(self, name: str) -> None:
        """Add the module with this name and the packages that contain it."""
        if name in self._seen or name == "__main__":
            return
        self._seen.add(name)
        if parent := name.rpartition(".")[0]:
            self.add_module(parent)
        file = source_of_module(name)
        if file is not None and not is_installed(file) and file.resolve() != _main_file():
            self.add_file(file, name)

    def add_file(self, file: Path, name: str = "") -> None:
        """Add a source file, wherever it is; `name` is that of its module, which relative imports start from."""
        path = file.resolve()
        if path in self._paths or not path.is_file():
            return
        content = path.read_bytes()
        self._paths.add(path)
        self.files.append(CodeFile(path, content, name))
        try:
            with warnings.catch_warnings(action="ignore"):  # they would print lines of the file
                code = compile(content, str(path), "exec", dont_inherit=True)
        except UNREADABLE:  # an extension module
            return
        self.add_imports(code, name if path.stem == "__init__" else name.rpartition(".")[0])

    def add_imports(self, code: CodeType, package: str) -> None:
        """Add what this code imports; relative imports start from `package`."""
        for name in _imports(code, package):
            self.add_module(name)


def _imports(code: CodeType, package: str) -> Iterator[str]:
    """Yield the names of modules that the code imports; `from a import b` gives a and a.b, which may be a module."""
    before: list[dis.Instruction] = []
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            level, wanted = before[-2].argval, before[-1].argval
            try:
                name = resolve_name("." * level + step.argval, package)
            except ImportError:  # relative, outside a package: it would fail when run, too
                continue
            yield name
            yield from (f"{name}.{member}" for member in wanted or () if member != "*")
        if step.opname != "EXTENDED_ARG":
            before.append(step)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant, package)


def source_of_module(name: str) -> Path | None:
    """Return the file of a module, loaded or not; None if there is no such module or it has no file."""
    if (module := sys.modules.get(name)) is not None:
        file = getattr(module, "__file__", None)
        return Path(file) if file else None
    spec = _find_spec(name)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _find_spec(name: str) -> ModuleSpec | None:
    """Find a module as importlib.util.find_spec does, without importing its parent packages."""
    parent, path = name.rpartition(".")[0], None
    if parent:
        path = _search_path(parent)
        if path is None:
            return None
    specs = (finder.find_spec(name, path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    try:
        return next((spec for spec in specs if spec is not None), None)
    except (ImportError, KeyError, ValueError):  # a package inside a package that is spread over several folders
        return None


def _search_path(package: str) -> Sequence[str] | None:
    if (module := sys.modules.get(package)) is not None:
        return getattr(module, "__path__", None)
    spec = _find_spec(package)
    return None if spec is None else spec.submodule_search_locations


def _main_file() -> Path | None:
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file).resolve() if file else None
