"""Files that survive a crash, secrets that only their owner may read, and locks that one process holds."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self

from discreet.errors import DiscreetError, InvalidInput

ANYONE, OWNER = 0o666, 0o600  # who may read a new file, as far as the user's umask allows
STORAGE_PROBE = 1 << 20  # bytes
DIGITS = 20  # of a process id, at most


def state_folder() -> Path:
    """Return the user's folder of this package: $XDG_STATE_HOME/discreet, or ~/.local/state/discreet.

    A relative XDG_STATE_HOME is ignored, as its specification asks: it would be a folder of the current directory.
    """
    named = Path(os.environ.get("XDG_STATE_HOME") or "")
    state = named if named.is_absolute() else Path("~/.local/state").expanduser()
    return state / "discreet"


def write_durably(path: Path, content: bytes, mode: int = ANYONE) -> None:
    """Write a file whole. After a crash it has its old content or the new one, on disk."""
    draft = path.with_name(f".{path.name}.draft")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    if mode == OWNER:
        os.fchmod(file, OWNER)  # a draft that a killed process left keeps the mode that it had
    _write_and_sync(file, content)
    os.replace(draft, path)
    sync_directory(path.parent)


def create_secret(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read. An existing file is never overwritten.

    Raises:
        FileExistsError: There is such a file.
    """
    _write_and_sync(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER), content)


def _write_and_sync(fd: int, content: bytes) -> None:
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(fd)


def sync_directory(path: Path) -> None:
    """Flush the directory entry to the disk: without it a new file name can be lost in a power failure."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def storage_fault(folder: Path) -> str | None:
    """Return why no further megabyte can be written to this folder, None if it can."""
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(STORAGE_PROBE))
            file.flush()
    except OSError as error:
        return error.strerror
    return None


def lock_file(file: IO[bytes] | int, busy: DiscreetError) -> None:
    """Lock an open file until it is closed. Raise `busy` if another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise busy from None


@contextmanager
def wait_for_lock(path: Path) -> Iterator[None]:
    """Hold the lock file at `path` while the block lasts. Waits for a process that holds it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, OWNER)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file at `path`. A process that locks it at this very moment may be refused."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


class ProcessLock:
    """A lock file that one process holds until it closes or deletes this object, or ends. It contains the process id.

    A process that inherits the descriptor `fd` holds the lock too. Whoever holds it is alive, so the process id in the
    file is never that of another process.
    """

    fd = -1

    def __init__(self, path: Path, busy: Callable[[str], InvalidInput]) -> None:
        """Lock the file at `path`, which is created if needed.

        Args:
            busy: Returns the error to raise if another process holds the lock, given that process's id.
        """
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, OWNER)
        try:
            lock_file(self.fd, busy(os.pread(self.fd, DIGITS, 0).decode() or "unknown"))
        except BaseException:
            self.close()
            raise
        self.write_process_id(os.getpid())

    def write_process_id(self, process: int) -> None:
        """Write the id of the process that holds the lock into its file."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, str(process).encode(), 0)

    def close(self) -> None:
        """Unlock the file."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
