"""Where things lie on this machine: an experiment's own files, data sets, and what was computed from them once."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Watch: TypeAlias = Callable[[str, int, int], None]  # what is computed, how much of it is done, of how much


def _silently(what: str, done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Places:
    """`folder` is what an experiment's file names are relative to; `data` holds a folder a data set; `cache` may go.

    `watch` hears of what takes a while to compute.
    """

    folder: Path
    data: Path
    cache: Path
    watch: Watch = _silently

    @classmethod
    def of(cls, folder: Path | None = None, data: Path | None = None) -> "Places":
        """As given; else data sets lie where DISCREET_DATA says, else in the user's cache."""
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "discreet"
        named = os.environ.get("DISCREET_DATA")
        return cls(
            folder=folder or Path(),
            data=data or (Path(named) if named else home / "data"),
            cache=Path(os.environ.get("DISCREET_CACHE") or home / "features"),
        )
