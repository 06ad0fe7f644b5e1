"""Arrays that are computed once: kept on this machine, by what they were computed from and how.

A file appears under its name with its whole content or not at all, so a killed writer leaves nothing that is read, and
two writers at once leave one of two equal files. What it left, the next to come takes away. Deleting the folder costs
time, nothing else.
"""

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

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from discreet.errors import DiscreetError
from discreet.privacy.ledger.log import sync_directory

FORMAT = 1
PIECE = 2**24  # bytes: hashed apart, so that all cores help
ABANDONED = 3600  # seconds: no draft takes that long to write, so its writer is gone, on whatever machine
DRAFT = ".draft"
WRITER = re.compile(r"-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.draft$")  # which machine, and which process there


def load_or_compute(
    folder: Path,
    inputs: Tensor,
    settings: Mapping[str, Any],
    compute: Callable[[], Tensor],
    fits: Callable[[Tensor], bool] = lambda found: True,
) -> Tensor:
    """What `compute()` gives, from the cache where that is there, whole and `fits`; else computed and kept.

    `settings` is plain data: all that the result depends on besides the inputs. What comes from the cache is mapped
    into memory, and read when it is touched.
    """
    about = {"format": FORMAT, "inputs": tensor_digest(inputs), "settings": settings}
    name = hashlib.sha256(json.dumps(about, sort_keys=True, default=repr).encode()).hexdigest()[:32]
    path = folder / f"{name}.safetensors"
    _remove_abandoned_drafts(folder)
    found = _read(path)
    if found is not None and fits(found):
        return found
    _create_folder(folder)
    made = compute().contiguous()
    _write(path, made)
    return made


def tensor_digest(values: Tensor) -> str:
    """Of its numbers, their type and its shape."""
    data = values.detach().cpu().contiguous()
    flat: Any = data.reshape(-1).view(torch.uint8).numpy()
    with ThreadPoolExecutor() as pool:  # hashing lets go of the interpreter's lock
        pieces = pool.map(
            lambda start: hashlib.sha256(flat[start : start + PIECE]).digest(), range(0, len(flat), PIECE)
        )
        whole = hashlib.sha256(f"{data.dtype} {tuple(data.shape)}".encode() + b"".join(pieces))
    return whole.hexdigest()


def _read(path: Path) -> Tensor | None:
    """The array, or None where there is none, or not the one that was written."""
    try:
        with safe_open(path, framework="pt") as file:
            found: Tensor = file.get_tensor("values")
            written = (file.metadata() or {}).get("digest")
    except (OSError, SafetensorError):
        return None
    return found if tensor_digest(found) == written else None


def _write(path: Path, values: Tensor) -> None:
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
    """The folder; that it can't be written shows before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f"probe-{_machine_id()}-{os.getpid()}-{token_hex(4)}{DRAFT}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _unwritable_error(folder, error) from error


def _remove_abandoned_drafts(folder: Path) -> None:
    """Take away what killed writers left; whatever can't be looked at or removed stays, and harms nobody."""
    with suppress(OSError):
        for draft in folder.glob(f"*{DRAFT}"):
            with suppress(OSError):
                if _is_abandoned(draft):
                    draft.unlink(missing_ok=True)


def _is_abandoned(draft: Path) -> bool:
    """Its writer was a process of this machine that is gone; or else it lies there for long."""
    writer = WRITER.search(draft.name)
    if writer and writer[1] == _machine_id() and not _is_running(int(writer[2])):
        return True
    return time.time() - draft.stat().st_mtime > ABANDONED


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks, and sends nothing
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@cache
def _machine_id() -> str:
    """Short for what a process's number belongs to: this host and, in a container, its own count of processes."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return hashlib.sha256(f"{socket.gethostname()} {space}".encode()).hexdigest()[:8]


def _unwritable_error(folder: Path, error: Exception) -> DiscreetError:
    in_the_way = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    if not in_the_way.is_dir():
        return DiscreetError(
            f"The cache {folder} can't be written: {in_the_way} is a file, not a folder.",
            fix="Let DISCREET_CACHE name a folder, or unset it.",
        )
    return DiscreetError(
        f"The cache {folder} can't be written: {error}.", fix="Let DISCREET_CACHE name a folder with room."
    )
