"""Which of an experiment's own code may run on this machine: nothing that nobody has trusted."""

import ast
import hashlib
import json
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput, escape_controls
from discreet.logs import get_log

log = get_log(__name__)

SHOWN_DIGITS = 12  # of a digest in a sentence
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what Python raises for a file that is no code


class UntrustedCode(InvalidInput):
    """Code of the experiment would run, and nobody has trusted it. None of it was run."""


@dataclass(frozen=True)
class CodeFile:
    """A file of code as it was read: these bytes are hashed, shown and run.

    Attributes:
        module: The name under which it is imported; empty for a file that a reference names by its path.
    """

    path: Path
    content: bytes = field(repr=False)
    module: str = ""

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def owner(self) -> str:
        """The user who owns the file on this machine."""
        try:
            return self.path.owner()
        except (KeyError, OSError, NotImplementedError):
            return "an unknown user"

    @property
    def lines(self) -> int:
        return len(self.content.splitlines())

    def describe(self) -> str:
        """Describe the file in a few words: where it is, its size, its owner and the start of its digest."""
        path = escape_controls(str(self.path))
        return f"{path} ({self.lines:,} lines, owned by {self.owner}, sha256 {self.sha256[:SHOWN_DIGITS]}…)"


@dataclass(frozen=True)
class OwnCode:
    """What a reference would run: the file that it names, and the user's files that this one imports.

    Attributes:
        reference: `file.py:Name` or `package.module:Name`; a file's name alone for all that it defines.
        files: The named file first. Empty for a module that is part of Python itself.
        settings: The table in which the reference is written, without its kind.
        is_installed: Whether it is a module of an installed package or of Python itself.
    """

    reference: str
    files: tuple[CodeFile, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_installed: bool = False

    @property
    def sha256(self) -> str:
        """The digest by which the code is trusted: that of the file, if it alone runs and defines the name.

        A name that a file only imports can be any function, such as one that starts a program. What such a function
        does depends on its arguments, so the digest covers these as well.
        """
        _, colon, name = self.reference.rpartition(":")
        is_own = bool(self.files) and not self.is_installed
        is_whole = is_own and (not colon or _defines(self.files[0].content, name))
        if is_whole and len(self.files) == 1:
            return self.files[0].sha256
        lines = sorted(f"{file.module or file.path.name} {file.sha256}" for file in self.files)
        if not is_whole:
            chosen = {key: value for key, value in self.settings.items() if value not in (None, {}, [])}
            lines += [self.reference, json.dumps(chosen, sort_keys=True, default=str)]
        # The first byte is in no source file, so that no file has the digest of a reference.
        return hashlib.sha256(b"\0" + "\n".join(lines).encode()).hexdigest()

    def describe(self) -> str:
        """Say in words what would run."""
        reference = escape_controls(self.reference)
        if not self.files:
            return f"{reference}, which is part of Python"
        files = ", ".join(file.describe() for file in self.files)
        return f"{reference} from {files}"


@dataclass(frozen=True)
class Trust:
    """Decides which code may run. Everything that runs an experiment's own code needs one, and none allows by default.

    Attributes:
        allows: Whether this code may run.
        remedy: What the user can do if it may not.
    """

    allows: Callable[[OwnCode], bool]
    remedy: str

    def check(self, code: OwnCode) -> None:
        """Refuse code that may not run.

        Raises:
            UntrustedCode: Nobody has trusted it.
        """
        if not self.allows(code):
            log.warning("own code refused", sha256=code.sha256)
            raise UntrustedCode(f"This would run {code.describe()}, and you have not trusted it.", fix=self.remedy)

    @classmethod
    def no_code(cls, remedy: str = "No code of an experiment runs here.") -> "Trust":
        """Allow no code."""
        return cls(_allow_none, remedy)

    @classmethod
    def all_code(cls) -> "Trust":
        """Allow all code that the experiment names: the user asked for it."""
        return cls(_allow_all, "")

    @classmethod
    def of_files(cls, digests: Collection[str]) -> "Trust":
        """Allow code all of whose files have one of these SHA-256 digests."""
        listed = frozenset(digests)

        def allows(code: OwnCode) -> bool:
            return bool(code.files) and all(file.sha256 in listed for file in code.files)

        return cls(allows, "Only files that were agreed on run here.")

    @classmethod
    def of_code(cls, digests: Collection[str], remedy: str) -> "Trust":
        """Allow code with one of these digests, `OwnCode.sha256`."""
        listed = frozenset(digests)
        return cls(lambda code: code.sha256 in listed, remedy)


def _allow_none(code: OwnCode) -> bool:
    return False


def _allow_all(code: OwnCode) -> bool:
    return True


def _defines(content: bytes, name: str) -> bool:
    """Return whether a file defines this class or function itself, at its top level."""
    try:
        with warnings.catch_warnings(action="ignore"):  # they would print lines of the file
            tree = ast.parse(content)
    except UNREADABLE:
        return False
    return any(isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name for node in tree.body)
