"""Replace several files as one: after a crash at any moment, all keep their old content or all get the new one."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from discreet.deploy.deployment import DEPLOYMENT_FILE
from discreet.durable_files import sync_directory, wait_for_lock, write_durably
from discreet.errors import InvalidInput

SWITCH = "switch"  # has the new files, complete, until each is at its place
PROBE = ".switch-probe"  # an empty file, moved to each folder before the files that count
LOCK = "switch.lock"  # held by the process that writes or moves them


def replace_files(folder: Path, place: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    """Replace files, or create them. A crash before the last is at its place is made up for by `finish_switch`.

    Args:
        folder: The folder to which the files' names are relative.
        place: A folder on the same disk that only its owner may read, for the new files in between.
        files: For each file its new content, and who may read it: a mode of `durable_files`.

    Raises:
        InvalidInput: One of the folders takes no file from `place`. Nothing was changed.
    """
    with wait_for_lock(place / LOCK):
        _move_files(folder, place)  # of a process that was killed
        draft = place / f".{SWITCH}"
        shutil.rmtree(draft, ignore_errors=True)  # likewise
        draft.mkdir(mode=0o700)
        for name, (content, mode) in files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(path, content, mode)
            sync_directory(path.parent.parent)
        _check_moves(draft, sorted({(folder / name).parent for name in files}))
        sync_directory(draft)
        draft.rename(place / SWITCH)  # from here on, the new files are those that count
        sync_directory(place)
        _move_files(folder, place)


def _check_moves(draft: Path, targets: list[Path]) -> None:
    """Refuse a change that could not be finished, as where a folder is mounted into a container."""
    for target in targets:
        (draft / PROBE).touch()
        try:
            os.replace(draft / PROBE, target / PROBE)
            (target / PROBE).unlink()
        except OSError as error:
            shutil.rmtree(draft)
            raise InvalidInput(
                f"{target} takes no new file from here ({error.strerror}), so nothing was changed.",
                fix="Run this where the whole folder can be written: not in a container, and as its owner.",
            ) from None


def finish_switch(folder: Path, place: Path) -> None:
    """Move the files of a `replace_files` that was interrupted to their places. Call it before any of them is read."""
    if (place / SWITCH).is_dir():  # otherwise nothing is written: the folder may be read-only
        with wait_for_lock(place / LOCK):
            _move_files(folder, place)


def _move_files(folder: Path, place: Path) -> None:
    switch = place / SWITCH
    for path in sorted(filter(Path.is_file, switch.rglob("*")), key=_moving_order):
        target = folder / path.relative_to(switch)
        os.replace(path, target)
        sync_directory(target.parent)
    shutil.rmtree(switch, ignore_errors=True)


def _moving_order(path: Path) -> tuple[bool, Path]:
    """Move deployment.toml last: beside the number that a policy has accepted, its node refuses what is new."""
    return path.name == DEPLOYMENT_FILE, path
