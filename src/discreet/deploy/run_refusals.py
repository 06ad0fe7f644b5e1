"""Which clients refused or were left out in a run, and why: written by the run, for `discreet deploy status`."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from discreet.durable_files import OWNER
from discreet.errors import shorten_names

NAME = "[A-Za-z0-9_-]+"  # of a client
# It begins with our own words, names of clients, so that no line in which a client is quoted passes for a refusal.
SENTENCE = re.compile(
    rf"(?P<who>A node|{NAME}(?:, {NAME})*) (?P<did>refused|is left out of) "
    r"(?P<what>(?:the rounds (?:after|from) )?(?:round \d+|the sum of moments)(?: on)?|to say who it is): (?P<why>.+)",
    re.S,
)


@dataclass(frozen=True)
class ClientRefusal:
    """What clients refused, in the words that they gave, or what they are left out of.

    Attributes:
        time: When the server heard it, in UTC.
        who: The clients' names, or "A node" if it did not say which client it is.
        what: The round, or what else was refused.
        why: The reason.
        did: "refused", or "is left out of" if the server does not ask the client again.
    """

    time: str
    who: str
    what: str
    why: str
    did: str = "refused"

    def __str__(self) -> str:
        return f"{shorten_names(self.who.split(', '))} {self.did} {self.what}: {self.why}"


def record_refusals(path: Path, say: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that prints a line as `say` does, and appends a refusal to a file that only its owner reads.

    The file names every client that refused, and the line a few of them. A file that can't be written does not stop the
    run: the line was printed.
    """

    def say_and_record(line: str) -> None:
        if (found := SENTENCE.fullmatch(line)) is None:
            say(line)
            return
        refusal = ClientRefusal(datetime.now(UTC).isoformat(timespec="seconds"), **found.groupdict())
        say(str(refusal))
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER)
            try:
                os.write(file, json.dumps(asdict(refusal)).encode() + b"\n")
            finally:
                os.close(file)
        except OSError:
            return

    return say_and_record


def read_refusals(path: Path) -> list[ClientRefusal]:
    """Read the refusals of a run, those of its earlier starts too. A line that was cut off is left out."""
    refusals = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            refusals.append(ClientRefusal(**json.loads(line)))
        except (ValueError, TypeError, RecursionError):
            continue
    return refusals
