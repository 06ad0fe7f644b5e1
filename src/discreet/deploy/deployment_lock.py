"""That one server at a time serves a deployment, and which process stands in the way of another."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.deploy.site import Site
from discreet.errors import InvalidInput

SUPERLINK_LOCK = "serving.lock"  # held by the server and by its SuperLink; it names the SuperLink
SERVER_LOCK = "server.lock"  # held by the server alone, and names it


@contextmanager
def lock_deployment(site: Site) -> Iterator[int]:
    """Two SuperLinks must not share a database; one that outlives its start has inherited the lock, and holds it.

    Whoever holds a lock is alive, and so its number in there is of no other process.
    """
    with _open_file(site.server / SERVER_LOCK) as own, _open_file(site.server / SUPERLINK_LOCK) as shared:
        if not _try_lock(own):
            raise _server_running_error(site, own)
        write_process_id(own, os.getpid())
        if not _try_lock(shared):
            raise _superlink_running_error(site, shared)
        os.ftruncate(shared, 0)  # until there is a SuperLink to name
        yield shared


def write_process_id(fd: int, process: int) -> None:
    """Write into a lock which process holds it."""
    os.ftruncate(fd, 0)
    os.pwrite(fd, str(process).encode(), 0)


def _server_running_error(site: Site, own: int) -> InvalidInput:
    process = _read_process_id(own)
    return InvalidInput(
        f"The server of {site.folder} is up already, as process {process}.",
        fix=f"Use that one, or end it first: kill {process}",
    )


def _superlink_running_error(site: Site, shared: int) -> InvalidInput:
    process = _read_process_id(shared)
    return InvalidInput(
        f"The server of {site.folder} is gone, and its SuperLink outlived it, as process {process}.",
        fix=f"End that first: kill {process}",
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
