"""What a client has answered, on its own disk before it is sent: so a retry replays bytes, and draws no noise twice."""

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.privacy.ledger.log import sync_directory

KEPT_ROUNDS = 2  # rounds whose replies stay


@dataclass(frozen=True)
class Entry:
    """A round's last attempt: which broadcast it answered, in which secure session, and under which number.

    An attempt whose answer may have been seen is never made again with the same noise for another question.
    """

    attempt: int
    broadcast: str
    session: str = ""

    @property
    def name(self) -> str:
        return f"attempt {self.attempt} {self.broadcast} {self.session}".rstrip()


@dataclass(frozen=True)
class OpenSession:
    """A secure session, and what it was opened for: another experiment or cohort has other terms.

    `name` is drawn by this client: a server that gave two sessions one name would get one noise in two sums.
    """

    experiment: str
    cohort: tuple[int, ...]
    name: str
    state: bytes = field(repr=False)


class Journal:
    """A folder for each run, with a file for each round's entry, its reply, and the secure session that is open.

    Each experiment has a journal of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def attempt(self, run: str, round: int, broadcast: str, session: str = "") -> Entry:
        """The entry that this question belongs to: the one that is there, or a new attempt."""
        path = self._run_folder(run) / f"round-{round}.json"
        before = self._read_entry(path)
        if before is not None and (before.broadcast, before.session) == (broadcast, session):
            return before
        return Entry(0 if before is None else before.attempt + 1, broadcast, session)

    def is_last_attempt(self, run: str, round: int, entry: Entry) -> bool:
        """Whether this very attempt is the last that was begun."""
        return self._read_entry(self._run_folder(run) / f"round-{round}.json") == entry

    def begin(self, run: str, round: int, entry: Entry) -> None:
        """Written once the attempt is counted, and before its noise is drawn."""
        write_durably(self._run_folder(run) / f"round-{round}.json", json.dumps(asdict(entry)).encode())

    def reply(self, run: str, round: int, entry: Entry) -> bytes | None:
        """The stored answer to this very question."""
        path = self._reply_path(run, round, entry)
        return path.read_bytes() if path.exists() else None

    def keep(self, run: str, round: int, entry: Entry, reply: bytes) -> None:
        """Each is as large as the model, so only those of the last rounds are kept: no server goes back further."""
        write_durably(self._reply_path(run, round, entry), reply)
        for old in self._run_folder(run).glob("round-*-*.reply"):
            if int(old.name.split("-")[1]) <= round - KEPT_ROUNDS:
                old.unlink()

    def is_forgotten(self, run: str, round: int, entry: Entry) -> bool:
        """Whether this very question was answered, and the answer is no longer there to be given again."""
        return self.is_last_attempt(run, round, entry) and round < self.counted_rounds(run) - KEPT_ROUNDS

    def session(self, run: str) -> OpenSession | None:
        path = self._run_folder(run) / "session"
        if not path.exists():
            return None
        head, _, state = path.read_bytes().partition(b"\n")
        experiment, cohort, name = json.loads(head)
        return OpenSession(experiment, tuple(cohort), name, state)

    def store_session(self, run: str, opened: OpenSession) -> None:
        """It is secret; and a new one takes the place of the old one, whose masks can then be opened no more."""
        head = json.dumps([opened.experiment, opened.cohort, opened.name]).encode()
        write_durably(self._run_folder(run) / "session", head + b"\n" + opened.state)

    def counted_rounds(self, run: str) -> int:
        """How many rounds from the first on are counted, asked for or not."""
        path = self._run_folder(run) / "counted"
        return int(path.read_text()) if path.exists() else 0

    def count(self, run: str, rounds: int) -> None:
        write_durably(self._run_folder(run) / "counted", str(rounds).encode())

    def _run_folder(self, run: str) -> Path:
        if not run.isalnum():  # it names a folder, and a server chose it
            raise InvalidInput(f"A run is named by letters and digits, and got {run!r}.")
        path = self._folder / run
        if not path.exists():
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            for above in path.parents[:3]:  # a folder whose name is not on the disk is lost with all that it holds
                sync_directory(above)
        return path

    def _reply_path(self, run: str, round: int, entry: Entry) -> Path:
        return self._run_folder(run) / f"round-{round}-{entry.attempt}.reply"

    @staticmethod
    def _read_entry(path: Path) -> Entry | None:
        return Entry(**json.loads(path.read_bytes())) if path.exists() else None


class FolderLock:
    """A folder that this process alone works on, until it is closed, let go of, or the process ends."""

    def __init__(self, folder: Path, busy: str) -> None:
        self._file = os.open(folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise InvalidInput(busy, fix="End the other one first: two would answer for one charge.") from None

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        self.close()


def write_durably(path: Path, content: bytes) -> None:
    """The whole content under this name, on the disk, readable by its owner alone; or what was there before."""
    draft = path.with_name(f".{path.name}.draft")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    sync_directory(path.parent)
