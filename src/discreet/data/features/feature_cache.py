"""A cache of computed arrays on this machine, keyed by their inputs and settings.

A file is renamed to its final name once it is complete, so a killed process leaves nothing that is read, and two
processes that write at once leave one of two equal files. Drafts of killed processes are removed by the next user of
the cache. Deleting the folder costs only time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any

from safetensors import SafetensorError, safe_open

from discreet.durable_files import sync_directory
from discreet.errors import DiscreetError
from discreet.lazy_torch import Tensor, torch

FORMAT = 1
PIECE = 2**24  # bytes that are hashed at once, so that all cores are used
ABANDONED = 3600  # seconds: an older draft was left by a killed process, maybe on another machine
DRAFT = ".draft"
WRITER = re.compile(r"-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.draft$")  # machine and process


def load_or_compute(
    folder: Path,
    inputs: Tensor,
    settings: Mapping[str, Any],
    compute: Callable[[], Tensor],
    is_valid: Callable[[Tensor], bool] = lambda cached: True,
) -> Tensor:
    """Return an array from the cache, or compute it and store it there.

    An array from the cache is mapped into memory, and read when it is used.

    Args:
        folder: The folder of the cache.
        inputs: What the array is computed from.
        settings: Plain data: everything else that the array depends on.
        compute: Computes the array.
        is_valid: Is called with the cached array. If it returns False, the array is computed again.

    Raises:
        DiscreetError: The folder can't be written to.
    """
    key = {"format": FORMAT, "inputs": tensor_digest(inputs), "settings": settings}
    name = hashlib.sha256(json.dumps(key, sort_keys=True, default=repr).encode()).hexdigest()[:32]
    path = folder / f"{name}.safetensors"
    _remove_abandoned_drafts(folder)
    cached = _read(path)
    if cached is not None and is_valid(cached):
        return cached
    _create_folder(folder)
    computed = compute().contiguous()
    _write(path, computed)
    return computed


def tensor_digest(values: Tensor) -> str:
    """Return the SHA-256 of a tensor's numbers, type and shape."""
    data = values.detach().cpu().contiguous()
    flat: Any = data.reshape(-1).view(torch.uint8).numpy()
    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter's lock
        pieces = pool.map(
            lambda start: hashlib.sha256(flat[start : start + PIECE]).digest(), range(0, len(flat), PIECE)
        )
        whole = hashlib.sha256(f"{data.dtype} {tuple(data.shape)}".encode() + b"".join(pieces))
    return whole.hexdigest()


def _read(path: Path) -> Tensor | None:
    """Return the array in a file, or None if there is no file or its content was changed."""
    try:
        with safe_open(path, framework="pt") as file:
            values: Tensor = file.get_tensor("values")
            written = (file.metadata() or {}).get("digest")
    except (OSError, SafetensorError):
        return None
    return values if tensor_digest(values) == written else None


def _write(path: Path, values: Tensor) -> None:
    from safetensors.torch import save_file  # imports torch

    draft = path.with_name(f"{path.stem}-{_machine_id()}-{os.getpid()}-{token_hex(4)}{DRAFT}")
    try:
        save_file({"values": values}, draft, {"digest": tensor_digest(values)})
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
        sync_directory(path.parent)
    except (OSError, SafetensorError) as error:
        raise _unwritable_error(path.parent, error) from error
    finally:
        draft.unlink(missing_ok=True)


def _create_folder(folder: Path) -> None:
    """Create the folder, and check that it can be written to before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f"probe-{_machine_id()}-{os.getpid()}-{token_hex(4)}{DRAFT}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _unwritable_error(folder, error) from error


def _remove_abandoned_drafts(folder: Path) -> None:
    """Remove the drafts of killed processes. A draft that can't be removed does no harm."""
    with suppress(OSError):
        for draft in folder.glob(f"*{DRAFT}"):
            with suppress(OSError):
                if _is_abandoned(draft):
                    draft.unlink(missing_ok=True)


def _is_abandoned(draft: Path) -> bool:
    """Return whether the process that wrote the draft no longer runs, or whether the draft is old."""
    writer = WRITER.search(draft.name)
    if writer and writer[1] == _machine_id() and not _is_running(int(writer[2])):
        return True
    return time.time() - draft.stat().st_mtime > ABANDONED


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)  # signal 0 only checks that the process exists
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@cache
def _machine_id() -> str:
    """Identify the host and, in a container, its process namespace: a process number is unique only there."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return hashlib.sha256(f"{socket.gethostname()} {space}".encode()).hexdigest()[:8]


def _unwritable_error(folder: Path, error: Exception) -> DiscreetError:
    existing = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not existing.is_dir():
        return DiscreetError(
            f"The cache {folder} can't be written: {existing} is a file, not a folder.",
            fix="Set DISCREET_CACHE to a folder, or unset it.",
        )
    return DiscreetError(
        f"The cache {folder} can't be written: {error}.", fix="Set DISCREET_CACHE to a folder with free space."
    )
