"""The code that the user has trusted for good: a list of digests in the user's state folder, never in an experiment's.

An entry holds for these bytes, wherever the file is. Code that has changed is asked for again.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from discreet.durable_files import OWNER, state_folder, write_durably
from discreet.errors import InvalidInput
from discreet.json_reader import parse_json
from discreet.trust import OwnCode, Trust

FILE_NAME = "trusted.json"


@dataclass(frozen=True)
class TrustedCode:
    """An entry of the list.

    Attributes:
        sha256: The digest of the code, `OwnCode.sha256`.
        path: Where the file was when it was trusted; the reference, for a module that is part of Python.
        date: When it was trusted.
    """

    sha256: str
    path: str
    date: str


def store_path() -> Path:
    """Return the file of the list."""
    return state_folder() / FILE_NAME


def read_trusted() -> list[TrustedCode]:
    """Read the list. It is empty if nothing was trusted yet.

    Raises:
        InvalidInput: The file is damaged.
    """
    path = store_path()
    problem, fix = f"The list of trusted code at {path} can't be read", "Remove it, and trust again."
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInput(f"{problem} ({error.strerror}).", fix=fix) from None
    damaged = InvalidInput(f"{problem}.", fix=fix)
    return parse_json(content, lambda entries: [TrustedCode(**entry) for entry in entries], damaged)


def remember(codes: Sequence[OwnCode]) -> list[TrustedCode]:
    """Add code to the list, and return the new entries in the order of `codes`."""
    today = datetime.now(UTC).date().isoformat()
    new = [TrustedCode(code.sha256, str(code.files[0].path if code.files else code.reference), today) for code in codes]
    known = {entry.sha256: entry for entry in [*read_trusted(), *new]}
    _write([*known.values()])
    return new


def forget(text: str) -> list[TrustedCode]:
    """Remove the entries of a path, or whose sha256 begins with the text (at least 6 digits), and return them.

    Raises:
        InvalidInput: There is no such entry.
    """
    entries, path = read_trusted(), str(Path(text).resolve())
    gone = [
        entry for entry in entries if entry.path in (text, path) or (len(text) >= 6 and entry.sha256.startswith(text))
    ]
    if not gone:
        raise InvalidInput(f"No trusted code has the path or sha256 {text!r}.", fix="See: discreet trust --list")
    _write([entry for entry in entries if entry not in gone])
    return gone


def trust_remembered(remedy: str, ask: Callable[[OwnCode], bool] | None = None) -> Trust:
    """Return the trust that allows code on the list, and what the user allows when asked, for as long as this lasts.

    Args:
        remedy: What the user can do about code that is refused.
        ask: Asks the user whether this code may run. Called once for each code. None asks nobody.
    """
    answers: dict[str, bool] = {}

    def allows(code: OwnCode) -> bool:
        digest = code.sha256
        if digest not in answers:
            is_known = any(entry.sha256 == digest for entry in read_trusted())
            answers[digest] = is_known or (ask is not None and ask(code))
        return answers[digest]

    return Trust(allows, remedy)


def _write(entries: Sequence[TrustedCode]) -> None:
    path = store_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        content = json.dumps([asdict(entry) for entry in entries], indent=1) + "\n"
        write_durably(path, content.encode(), OWNER)
    except OSError as error:
        raise InvalidInput(f"The list of trusted code can't be kept at {path} ({error.strerror}).") from None
