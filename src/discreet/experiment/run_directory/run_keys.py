"""The key of a run that may still be resumed: it is kept in the user's folder, never in the run directory.

Someone who has the key can draw the run's noise again and remove it, and run directories are passed around.
"""

import errno
import re
from pathlib import Path

from discreet.durable_files import create_secret, state_folder
from discreet.errors import InvalidInput
from discreet.randomness.streams import RunKey


def default_folder() -> Path:
    """Return the folder of keys: $XDG_STATE_HOME/discreet/keys, or ~/.local/state/discreet/keys."""
    return state_folder() / "keys"


def store_key(key: RunKey, run: str, folder: Path | None) -> None:
    """Store the key for a resume, readable only by its owner. A seeded run needs no stored key."""
    if key.is_seeded:
        return
    path = _path(run, folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        create_secret(path, key.secret)
    except OSError as error:
        raise InvalidInput(
            f"The run's key can't be kept at {path} ({error.strerror}), and without it no run can be resumed.",
            fix="Name a folder of your own: --key-dir FOLDER.",
        ) from None


def load_key(run: str, folder: Path | None) -> RunKey:
    """Load the key of a run that is resumed."""
    path = _path(run, folder)
    try:
        return RunKey(path.read_bytes())
    except OSError:
        raise InvalidInput(
            f"The key of this run is not at {path}, so its noise can't be drawn again and the run can't go on.",
            fix="Name the folder that holds it (--key-dir FOLDER), or start a new run.",
        ) from None


def delete_key(run: str, folder: Path | None) -> None:
    """Delete the key of a finished run: from then on nobody can draw its noise again."""
    path = _path(run, folder)
    try:
        path.unlink()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):  # else it was never stored
            raise


def _path(run: str, folder: Path | None) -> Path:
    if not re.fullmatch(r"[0-9a-f]{16}", run):  # a run directory of another person could name any file
        raise InvalidInput(f"run.json must name the run by 16 hexadecimal digits, and got {run!r}.")
    return (folder or default_folder()) / f"{run}.key"
