"""Replace several files as one: after a crash at any moment, all keep their old content or all get the new one."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from discreet.durable_files import sync_directory, write_durably

SWITCH = "switch"  # has the new files, complete, until each is at its place


def replace_files(folder: Path, place: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    """Replace files, or create them. A crash before the last is at its place is made up for by `finish_switch`.

    Args:
        folder: The folder to which the files' names are relative.
        place: A folder on the same disk that only its owner may read, for the new files in between.
        files: For each file its new content, and who may read it: a mode of `durable_files`.
    """
    draft = place / f".{SWITCH}"
    shutil.rmtree(draft, ignore_errors=True)  # of a process that was killed
    draft.mkdir(mode=0o700)
    for name, (content, mode) in files.items():
        path = draft / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, content, mode)
        sync_directory(path.parent.parent)
    sync_directory(draft)
    draft.rename(place / SWITCH)  # from here on, the new files are those that count
    sync_directory(place)
    finish_switch(folder, place)


def finish_switch(folder: Path, place: Path) -> None:
    """Move the files of a `replace_files` that was interrupted to their places. Call it before any of them is read."""
    switch = place / SWITCH
    if not switch.is_dir():
        return
    for path in sorted(switch.rglob("*")):
        if path.is_file():
            target = folder / path.relative_to(switch)
            with suppress(FileNotFoundError):  # another process moved it
                os.replace(path, target)
                sync_directory(target.parent)
    shutil.rmtree(switch, ignore_errors=True)
