"""Where the trials of a random search are kept, and how nothing of them is left: neither files nor times of files."""

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.durable_files import ProcessLock, state_folder
from discreet.errors import InvalidInput
from discreet.experiment.run_directory.run_record import explain_os_errors

LOCK = ".lock"  # beside the folder of a search, whose name it has in front of this ending


@contextmanager
def hidden_folder() -> Iterator[Path]:
    """Make a folder for the trials of one search, in the user's state folder, and remove it at the end.

    A process that is killed can't remove it, so the next search does. Only its owner may read it.
    """
    place = trial_folder()
    with explain_os_errors("folder of hidden trials", place):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_abandoned(place)
    hidden = place / secrets.token_hex(8)
    lock, draft = hidden.with_suffix(LOCK), hidden.with_suffix(".draft")
    with ProcessLock(draft, _busy):
        draft.rename(lock)  # locked already, so no other search takes it for abandoned
        try:
            hidden.mkdir(mode=0o700)
            yield hidden
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
            lock.unlink(missing_ok=True)


def trial_folder() -> Path:
    """Return the folder of hidden trials: $XDG_STATE_HOME/discreet/searches, or ~/.local/state/discreet/searches."""
    return state_folder() / "searches"


def remove_abandoned(place: Path) -> None:
    """Remove what searches left that were killed: their locks are free."""
    for lock in place.glob(f"*{LOCK}"):
        try:
            with ProcessLock(lock, _busy):
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink(missing_ok=True)
        except InvalidInput:  # that search goes on
            continue


@contextmanager
def times_of_beginning(folder: Path) -> Iterator[None]:
    """At the end, set the times of all files below `folder` to when it began: they would show how long it took.

    The file system keeps a time of change that nobody can set; a copy of the files doesn't have it.
    """
    began = time.time_ns()
    try:
        yield
    finally:
        for path in [*folder.rglob("*"), folder]:
            if path.exists():
                os.utime(path, ns=(began, began), follow_symlinks=False)


def _busy(process: str) -> InvalidInput:
    return InvalidInput(f"Process {process} holds the lock of a search.")
