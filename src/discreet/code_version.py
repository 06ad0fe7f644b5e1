"""Which code this is: its version, its commit, and whether files were changed since that commit.

A checkout of the repository asks git, because what was written at its installation is out of date after the next
commit. An installed package reads `_built_version.toml`, which the build writes into it; an archive of the repository,
`_archive_commit.txt`, into which git writes the commit. Only what is asked for is read: `import discreet` starts no
process.
"""

import importlib.metadata
import os
import re
import subprocess
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from discreet.words import fill

PACKAGE = Path(__file__).resolve().parent
BUILT, ARCHIVE = "_built_version.toml", "_archive_commit.txt"
GIT_SECONDS = 10.0
SHORT = 9  # digits of a commit in a version
UNKNOWN = "0+unknown"
_HASH = re.compile(r"[0-9a-f]{40,64}")
_STAMP = re.compile(
    rf"(?P<version>[0-9A-Za-z.!_-]{{1,60}})(?:\+g(?P<commit>{_HASH.pattern})(?:\.(?P<state>dirty|unchecked))?)?"
)
_DIRTY = {None: False, "dirty": True, "unchecked": None}
_STATES = {True: ".dirty", False: "", None: ".unchecked"}


@dataclass(frozen=True)
class CodeVersion:
    """A state of the code.

    Attributes:
        version: The version as in the package's metadata. Between two versions it is the next one, with the number of
            commits since the last and with the commit: 0.3.0.dev12+gc825f7794, and the date if files were changed.
        commit: The commit in full. None if it is not known.
        dirty: Whether files were changed since that commit. None if that is not known.
    """

    version: str
    commit: str | None = None
    dirty: bool | None = None

    @property
    def public(self) -> str:
        """The version without the commit: 0.3.0.dev12."""
        return self.version.partition("+")[0]

    @property
    def release(self) -> str:
        """The version that this is, or that it will become: 0.3.0. All commits on the way to it have the same."""
        return self.public.partition(".dev")[0]

    @property
    def stamp(self) -> str:
        """Version, commit and state in one word, for the lines of ledgers and rounds: 0.3.0.dev12+g<commit>.dirty."""
        return self.public if self.commit is None else f"{self.public}+g{self.commit}{_STATES[self.dirty]}"

    @classmethod
    def from_stamp(cls, stamp: str) -> "CodeVersion":
        """Read a stamp. A text of another form becomes the version."""
        parts = _STAMP.fullmatch(stamp)
        if parts is None or parts["commit"] is None:
            return cls(stamp)
        return cls(parts["version"], parts["commit"], _DIRTY[parts["state"]])

    @staticmethod
    def is_stamp(text: str) -> bool:
        """Whether a text has the form of a stamp. It is then one word, and can't pass for a sentence."""
        return _STAMP.fullmatch(text) is not None

    def __str__(self) -> str:
        """Return the code in words: discreet 0.3.0.dev12, commit c825f7794, with uncommitted changes."""
        if self.commit is None:
            return fill("code.unknown", version=self.public)
        state = {True: "dirty", False: "clean", None: "unchecked"}[self.dirty]
        return fill(f"code.{state}", version=self.public, commit=self.commit[:SHORT])


@cache
def read_code_version() -> CodeVersion:
    """Return which code runs in this process. It never fails: what is not known is None."""
    return find_code_version(PACKAGE)


def find_code_version(package: Path) -> CodeVersion:
    """Return which code the package in this folder is: by git, as it was built, or as it was archived."""
    top = package.parents[1]
    base = _base_version(top) if top / "src" / "discreet" == package else None
    if base is not None and (top / ".git").exists():
        return _ask_checkout(top, base) or CodeVersion(base)
    built = _read_built(package)
    if built is not None and built.commit is not None:
        return built
    version = built.version if built else base or _installed_version()
    return CodeVersion(version, _read_archive_commit(package))


def _base_version(top: Path) -> str | None:
    """Return the version that pyproject.toml gives to a tree without tags, if it is our pyproject.toml."""
    try:
        settings = tomllib.loads((top / "pyproject.toml").read_text(encoding="utf-8"))
        if settings["project"]["name"] == "discreet":
            return str(settings["tool"]["setuptools_scm"]["fallback_version"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _ask_checkout(top: Path, base: str) -> CodeVersion | None:
    """Ask git for the state of the checkout, and name it as the build does. None if git can't say.

    Files that git doesn't know count as a change if they are in the package.
    """
    commit = _ask_git(top, "rev-parse", "--verify", "HEAD")
    changed = _ask_git(top, "status", "--porcelain", "--untracked-files=no")
    added = _ask_git(top, "ls-files", "--others", "--exclude-standard", "--", "src/discreet")
    if commit is None or changed is None or added is None:
        return None
    dirty = bool(changed or added)
    tag, _, since = (_ask_git(top, "describe", "--tags", "--long", "--match", "v[0-9]*") or "").partition("-")
    distance = since.partition("-")[0] or _ask_git(top, "rev-list", "--count", "HEAD") or "0"
    if tag and distance == "0" and not dirty:
        return CodeVersion(tag.removeprefix("v"), commit, dirty)
    date = f".d{datetime.now(UTC):%Y%m%d}" if dirty else ""
    return CodeVersion(f"{CodeVersion(base).release}.dev{distance}+g{commit[:SHORT]}{date}", commit, dirty)


def _ask_git(top: Path, *question: str) -> str | None:
    """Return git's answer about this work tree alone; None if git is absent, fails or hangs. Nothing is written."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # nosec B603 B607 # fixed words, by no shell; git is where the user's PATH has it
            ["git", "--no-optional-locks", "-C", str(top), *question],
            env=environment | {"GIT_CEILING_DIRECTORIES": str(top.parent), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _read_built(package: Path) -> CodeVersion | None:
    """Return what the build has written into the package."""
    try:
        built = tomllib.loads((package / BUILT).read_text(encoding="utf-8"))
        commit = str(built["commit"]).removeprefix("g")
        if _HASH.fullmatch(commit) is None:
            return CodeVersion(str(built["version"]))
        return CodeVersion(str(built["version"]), commit, built["dirty"] == "True")
    except (OSError, ValueError, KeyError):
        return None


def _read_archive_commit(package: Path) -> str | None:
    """Return the commit that `git archive` has written into the package."""
    try:
        commit = (package / ARCHIVE).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return commit if _HASH.fullmatch(commit) else None


def _installed_version() -> str:
    try:
        return importlib.metadata.version("discreet")
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN
