"""The draft of a folder: it is filled under a hidden name and gets its own name when it is complete."""

import secrets
import shutil
from pathlib import Path

DIGITS = 8  # random hexadecimal digits at the end of a draft's name


def draft_path(path: Path) -> Path:
    """Return a new path for the draft of the folder `path`, beside it."""
    return path.with_name(f".{path.name}.{secrets.token_hex(DIGITS // 2)}")


def remove_drafts(path: Path) -> None:
    """Remove the drafts of `path` that killed processes have left. No other process may be creating `path` now."""
    for draft in path.parent.glob(f".{path.name}.{'[0-9a-f]' * DIGITS}"):
        shutil.rmtree(draft)
