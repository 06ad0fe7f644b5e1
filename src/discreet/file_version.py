"""Versions of the files that outlive a program: a form that this code can't read is refused in words, never guessed at.

A version is raised only when a file of the new form would be misread by older code. A new field with a safe default
does not raise it. Files of versions that wrote no number have version 1.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.code_version import read_code_version
from discreet.errors import InvalidInput

FIRST = 1


def check_file_version(data: Mapping[str, Any], path: Path, newest: int = FIRST) -> None:
    """Refuse a file whose version this code does not know.

    Args:
        data: The content, whose `version` is checked. Without one it is 1.
        path: The file, for the message.
        newest: The newest version that this code reads. It reads all before it.

    Raises:
        InvalidInput: The version is newer, or is not a whole number from 1 on.
    """
    version = data.get("version", FIRST)
    if type(version) is not int or version < FIRST:
        raise InvalidInput(
            f"{path}: version must be a whole number from {FIRST} on, and got {version!r:.40}.",
            fix="Restore the file from its backup.",
        )
    if version > newest:
        known = f"version {newest}" if newest == FIRST else f"versions {FIRST} to {newest}"
        raise InvalidInput(
            f"{path} has version {version}, and discreet {read_code_version().version} reads {known}.",
            fix="Use the discreet that wrote it, or a newer one.",
        )
