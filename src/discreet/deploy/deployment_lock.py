"""The locks of a deployment: only one server may run at a time, and each lock file names the process that holds it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.deploy.site import Site
from discreet.errors import InvalidInput

SUPERLINK_LOCK = "serving.lock"  # held by the server and its SuperLink; contains the SuperLink's process id
SERVER_LOCK = "server.lock"  # held by the server alone; contains its process id


@contextmanager
def lock_deployment(site: Site) -> Iterator[int]:
    """Hold both locks of a deployment, so that two SuperLinks never share a database.

    A SuperLink inherits its lock, and so keeps holding it if the server that started it is gone. A process that holds a
    lock is alive, so the process id in the lock file is not another process's.

    Yields:
        The file descriptor of the SuperLink's lock, to be inherited by the SuperLink.

    Raises:
        InvalidInput: Another server or a SuperLink of this deployment is running.
    """
    with _open_file(site.server / SERVER_LOCK) as own, _open_file(site.server / SUPERLINK_LOCK) as shared:
        if not _try_lock(own):
            raise _server_running_error(site, own)
        write_process_id(own, os.getpid())
        if not _try_lock(shared):
            raise _superlink_running_error(site, shared)
        os.ftruncate(shared, 0)  # no SuperLink is running yet
        yield shared


def write_process_id(fd: int, process: int) -> None:
    """Write the id of the process that holds a lock into the lock file."""
    os.ftruncate(fd, 0)
    os.pwrite(fd, str(process).encode(), 0)


def _server_running_error(site: Site, own: int) -> InvalidInput:
    process = _read_process_id(own)
    return InvalidInput(
        f"The server of {site.folder} is already running as process {process}.",
        fix=f"Use that server, or end it first: kill {process}",
    )


def _superlink_running_error(site: Site, shared: int) -> InvalidInput:
    process = _read_process_id(shared)
    return InvalidInput(
        f"The server of {site.folder} has ended, but its SuperLink is still running as process {process}.",
        fix=f"End the SuperLink first: kill {process}",
    )


@contextmanager
def _open_file(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_process_id(fd: int) -> str:
    return os.pread(fd, 20, 0).decode() or "flower-superlink"
