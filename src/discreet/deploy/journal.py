"""A client's journal of its replies, written before they are sent: a retry replays bytes and draws no noise twice."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from discreet.algorithms.standardisation import PREPARATION
from discreet.durable_files import OWNER, sync_directory, write_durably
from discreet.errors import InvalidInput
from discreet.json_reader import parse_json

Plain = TypeVar("Plain", str, int)
KEPT_ROUNDS = 2  # rounds whose replies are kept


@dataclass(frozen=True)
class Entry:
    """The last attempt at a round. An attempt's noise is never used again for another broadcast or session.

    Attributes:
        attempt: Number of the attempt, starting at 0.
        broadcast: Digest of the broadcast that it answers.
        session: Name of the secure session and its round; empty for an update in clear.
    """

    attempt: int
    broadcast: str
    session: str = ""

    @property
    def name(self) -> str:
        """The attempt's part of the key in the ledger."""
        return f"attempt {self.attempt} {self.broadcast} {self.session}".rstrip()


@dataclass(frozen=True)
class OpenSession:
    """A secure session on disk, with the experiment and the cohort that it was opened for.

    `name` is drawn by this client: a server that could name two sessions alike would get the same noise in two sums.
    """

    experiment: str
    cohort: tuple[int, ...]
    name: str
    state: bytes = field(repr=False)


class Journal:
    """One experiment's journal: a folder for each run, with the rounds' entries and replies and the open session."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_attempt(self, run: str, round: int, broadcast: str, session: str = "") -> Entry:
        """Return the stored attempt at this round if it answers the same broadcast and session, else a new attempt."""
        before = self._read_entry(self._entry_path(run, round))
        if before is not None and (before.broadcast, before.session) == (broadcast, session):
            return before
        return Entry(0 if before is None else before.attempt + 1, broadcast, session)

    def is_last_attempt(self, run: str, round: int, entry: Entry) -> bool:
        """Whether this attempt is the last one that was begun in this round."""
        return self._read_entry(self._entry_path(run, round)) == entry

    def begin_attempt(self, run: str, round: int, entry: Entry) -> None:
        """Store the attempt. Call it after the ledger has counted the attempt and before its noise is drawn."""
        write_durably(self._entry_path(run, round), json.dumps(asdict(entry)).encode(), OWNER)

    def stored_reply(self, run: str, round: int, entry: Entry) -> bytes | None:
        """Return the stored reply of this attempt, None if there is none."""
        path = self._reply_path(run, round, entry)
        return path.read_bytes() if path.exists() else None

    def store_reply(self, run: str, round: int, entry: Entry, reply: bytes) -> None:
        """Store a reply and delete those of old rounds: each is as large as the model, and no server asks again."""
        write_durably(self._reply_path(run, round, entry), reply, OWNER)
        for old in self._run_folder(run).glob("round-*-*.reply"):
            if int(old.name.split("-")[1]) <= round - KEPT_ROUNDS:
                old.unlink()

    def is_forgotten(self, run: str, round: int, entry: Entry) -> bool:
        """Whether this attempt was answered and its reply is deleted by now."""
        return self.is_last_attempt(run, round, entry) and round < self.counted_rounds(run) - KEPT_ROUNDS

    def load_session(self, run: str) -> OpenSession | None:
        """Read the run's open secure session, None if there is none.

        Raises:
            InvalidInput: The file is damaged.
        """
        path = self._run_folder(run) / "session"
        if not path.exists():
            return None
        head, _, state = path.read_bytes().partition(b"\n")

        def build(about: Any) -> OpenSession:
            experiment, cohort, name = about
            clients = tuple(_require(int, client) for client in cohort)
            return OpenSession(_require(str, experiment), clients, _require(str, name), state)

        return parse_json(head, build, _damage(path))

    def store_session(self, run: str, session: OpenSession) -> None:
        """Store the secret state of a session over that of the one before, whose masks can no longer be opened then."""
        head = json.dumps([session.experiment, session.cohort, session.name]).encode()
        write_durably(self._run_folder(run) / "session", head + b"\n" + session.state, OWNER)

    def counted_rounds(self, run: str) -> int:
        """Return the number of rounds from the first on that the ledger has counted, requested or not.

        Raises:
            InvalidInput: The file is damaged.
        """
        path = self._run_folder(run) / "counted"
        return (
            parse_json(path.read_bytes(), lambda rounds: _require(int, rounds), _damage(path)) if path.exists() else 0
        )

    def store_counted_rounds(self, run: str, rounds: int) -> None:
        """Store that the ledger has counted the first `rounds` rounds."""
        write_durably(self._run_folder(run) / "counted", str(rounds).encode(), OWNER)

    def _run_folder(self, run: str) -> Path:
        """Return the run's folder, creating it if needed."""
        if not run.isalnum():  # the server chose it, and it becomes the name of a folder
            raise InvalidInput(f"A run's id must be letters and digits, and got {run!r}.")
        path = self._folder / run
        if not path.exists():
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            for above in path.parents[:3]:  # a folder whose entry is not on disk is lost with its content
                sync_directory(above)
        return path

    def _entry_path(self, run: str, round: int) -> Path:
        return self._run_folder(run) / f"{_round_name(round)}.json"

    def _reply_path(self, run: str, round: int, entry: Entry) -> Path:
        return self._run_folder(run) / f"{_round_name(round)}-{entry.attempt}.reply"

    @staticmethod
    def _read_entry(path: Path) -> Entry | None:
        def build(entry: Any) -> Entry:
            return Entry(
                _require(int, entry["attempt"]),
                _require(str, entry["broadcast"]),
                _require(str, entry.get("session", "")),
            )

        return parse_json(path.read_bytes(), build, _damage(path)) if path.exists() else None


def _require(kind: type[Plain], value: Any) -> Plain:
    """Return the value if it is of this type, which a bool is not."""
    if type(value) is not kind:
        raise TypeError
    return value


def _damage(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} in this node's journal can't be read.",
        fix="Put its newest copy back, or leave this run: without it the node could use the same noise twice.",
    )


def _round_name(round: int) -> str:
    """Return the name of a round's files. The sum of moments before the first round is none of the rounds."""
    return "moments" if round == PREPARATION else f"round-{round}"
