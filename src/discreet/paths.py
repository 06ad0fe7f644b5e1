"""The folders that an experiment reads from: its own files, data sets and computed features; and new files in them."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from discreet.errors import InvalidInput
from discreet.trust import Trust

OnProgress: TypeAlias = Callable[[str, int, int], None]  # (what is computed, examples done, examples in all)
PathLike: TypeAlias = str | Path
LONGEST_NAME = 255  # bytes of a file's name, on all usual file systems


def _ignore_progress(what: str, done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Paths:
    """The folders of one experiment on this machine.

    Attributes:
        folder: File names in the experiment are relative to this folder.
        data: Holds one folder for each data set.
        cache: Holds computed features. It can be deleted at any time; the features are then computed again.
        on_progress: Is called during long computations.
        trust: Which of the experiment's own code may run. Nothing, unless the caller asked for it.
    """

    folder: Path
    data: Path
    cache: Path
    on_progress: OnProgress = _ignore_progress
    trust: Trust = field(default_factory=Trust.no_code)

    @classmethod
    def default(cls, folder: Path | None = None, data: Path | None = None, trust: Trust | None = None) -> "Paths":
        """Return the paths for this user, from the arguments, the environment and the usual cache folder.

        Args:
            folder: Defaults to the current directory.
            data: Defaults to DISCREET_DATA, or else to `discreet/data` in the user's cache folder.
            trust: Defaults to nothing.
        """
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "discreet"
        data_from_environment = os.environ.get("DISCREET_DATA")
        return cls(
            folder=folder or Path(),
            data=data or (Path(data_from_environment) if data_from_environment else home / "data"),
            cache=Path(os.environ.get("DISCREET_CACHE") or home / "features"),
            trust=trust or Trust.no_code(),
        )


def to_path(path: PathLike) -> Path:
    """Return the path that a caller may have written as text.

    Raises:
        InvalidInput: It is neither, or no file can have this name.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(
            f"A path must be text or a pathlib.Path, and got an object of the class {type(path).__name__}."
        )
    text = os.fspath(path)
    if not isinstance(text, str) or not is_storable(text):
        raise InvalidInput(f"A path must be text in UTF-8, and got {text!r:.60}.", fix="Name it otherwise.")
    if any(len(name.encode()) > LONGEST_NAME for name in Path(text).parts):
        raise InvalidInput(
            f"Each name in a path must have at most {LONGEST_NAME} bytes, and got {text}.", fix="Name it otherwise."
        )
    return Path(text)


def is_storable(text: str) -> bool:
    """Return whether files of a run can hold this text: a name in another encoding than UTF-8 can't be written."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def optional_path(path: PathLike | None) -> Path | None:
    """Return the path that a caller may have written as text, or None."""
    return None if path is None else to_path(path)


def write_new_file(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all. Never overwrite an existing one.

    Raises:
        InvalidInput: The file exists, or can't be written.
    """
    try:
        with path.open("xb") as file:
            try:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
            except BaseException:
                path.unlink()
                raise
    except FileExistsError:
        raise InvalidInput(f"{path} exists, and is not overwritten.", fix="Name another file.") from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be written ({error.strerror}).") from None
