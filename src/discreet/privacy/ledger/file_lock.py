"""Lock an open file: exclusively for one writer, or shared among readers."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import InvalidInput, LedgerUnavailable
from discreet.logs import get_log

log = get_log(__name__)

NOTED_SECONDS = 0.5  # a wait for the lock that is worth an event


@contextmanager
def lock_file(path: Path, *, to_write: bool, wait: float) -> Iterator[int]:
    """Yield the descriptor of the locked file; raise LedgerUnavailable after `wait` seconds without the lock.

    The file is opened anew each time. A lock belongs to one opening, so threads and forked children exclude each other
    too. A process that dies releases its lock.
    """
    fd = _wait_for(path, to_write=to_write, wait=wait)
    try:
        yield fd
    finally:
        os.close(fd)  # which unlocks


def _wait_for(path: Path, *, to_write: bool, wait: float) -> int:
    began, pause = time.monotonic(), 0.001
    while (fd := _try(path, to_write=to_write)) is None:
        if time.monotonic() - began > wait:
            raise LedgerUnavailable(
                f"Another process has held {path} for more than {wait:g} s.",
                fix=f"Try again, or see which process it is with: fuser -v {path}",
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    if (waited := time.monotonic() - began) > NOTED_SECONDS:
        log.warning("waited for the lock of the ledger", path=path, seconds=waited)
    return fd


def _try(path: Path, *, to_write: bool) -> int | None:
    fd = _open(path, to_write=to_write)
    got = False
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if to_write else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        got = os.path.samestat(os.fstat(fd), os.stat(path))  # else the file was replaced while another held it
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError as error:
        raise LedgerUnavailable(
            f"{path} could not be locked ({error.strerror}).", fix="Keep it on a disk that has file locks."
        ) from None
    finally:
        if not got:
            os.close(fd)
    return fd if got else None


def _open(path: Path, *, to_write: bool) -> int:
    if path.is_dir():
        raise InvalidInput(f"{path} is a directory.", fix="Name the ledger's file.")
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is not an ordinary file.", fix="Name the ledger's file.")
    try:
        return os.open(path, (os.O_RDWR | os.O_APPEND) if to_write else os.O_RDONLY)
    except FileNotFoundError:
        raise InvalidInput(f"There is no ledger at {path}.", fix="Create one, or check the path.") from None
    except OSError as error:
        raise LedgerUnavailable(
            f"{path} could not be opened ({error.strerror}).", fix="Check who may read and write it."
        ) from None
