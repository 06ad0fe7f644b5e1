"""An append-only log that survives kill -9: one JSON record per line, each chained to the previous one by its hash.

It knows nothing about privacy. `docs/decisions/0002-ledger.md` says what it promises and what it doesn't.
"""

import errno
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.code_version import read_code_version
from discreet.durable_files import sync_directory
from discreet.errors import InvalidInput, LedgerDamaged, LedgerUnavailable
from discreet.privacy.ledger.file_lock import lock_file

GENESIS = "0" * 64  # the previous hash of the first record
RESTORE = "Restore it from a copy, and don't delete it: what it counted has been released."
_HASH = re.compile(rb',"hash":"([0-9a-f]{64})"}')
_HASH_BYTES = 75


@dataclass(frozen=True)
class Record:
    """One complete line: its number, its hash, its time by the writer's clock, its content, and the writer's code.

    `code` is a stamp of `discreet.code_version`. It is None on lines of versions that wrote none.
    """

    seq: int
    hash: str
    at: str
    body: dict[str, Any]
    code: str | None = None


class Log:
    """A position in one log file, for reading on and for writing.

    `read_new_records`, `append` and `sync` must be called within `lock`.

    Guarantee: a record that `append` returned is on the disk, and every later reader sees it or an error. A writer that
    dies leaves at most an unfinished last line, whose success was reported to nobody.
    """

    def __init__(self, path: Path, wait: float) -> None:
        self.path = path
        self.length = 0  # whole records read so far
        self.head = GENESIS
        self.torn = b""  # an unfinished last line, as last seen
        self._hashes: list[bytes] = []  # of the whole records read so far
        self._end = 0  # just after the last whole record
        self._ended = True  # whether that record has its newline
        self._wait = wait
        self._fd = -1
        self.mutex = threading.Lock()  # among the threads of this process; `lock` holds it

    @classmethod
    def create(cls, path: Path, body: dict[str, Any]) -> None:
        """Create the file with its first record, completely or not at all; never overwrite another file."""
        if path.is_dir():
            raise InvalidInput(f"{path} is a directory.", fix="Name the ledger's file.")
        line, _ = _encode(0, GENESIS, body)
        draft = path.with_name(f".{path.name}.{os.getpid()}-{time.monotonic_ns()}")
        try:
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            try:
                _write(fd, line)
                os.fsync(fd)
                os.link(draft, path)  # a rename would replace a ledger that another process made meanwhile
            finally:
                os.close(fd)
                with suppress(OSError):
                    os.unlink(draft)
            sync_directory(path.parent)
        except FileExistsError:
            raise InvalidInput(f"{path} exists already.", fix="Open it, or name another file.") from None
        except OSError as error:
            raise LedgerUnavailable(
                f"No ledger could be made at {path} ({error.strerror}).",
                fix="It needs a writable directory on a disk that has hard links and locks, such as a local one.",
            ) from None

    @contextmanager
    def lock(self, *, to_write: bool) -> Iterator[None]:
        """Lock the file: exclusively to write, shared with other readers to read."""
        with self.mutex, lock_file(self.path, to_write=to_write, wait=self._wait) as fd:
            self._fd = fd
            yield

    def read_new_records(self) -> Iterator[Record]:
        """Yield the records appended since the last call, each checked against the chain.

        A record counts as read once the next one is requested, so a caller that fails on one gets it again.
        """
        with self._translate_errors("read"), open(self._fd, "rb", closefd=False) as file:
            self._check_known_tail()
            file.seek(self._end)
            if not self._ended and file.read(1) == b"\n":  # another writer has ended our last line
                self._end, self._ended = self._end + 1, True
            file.seek(self._end)
            self.torn = b""
            for line in file:
                ended = line.endswith(b"\n")
                if not ended and not _HASH.search(line):  # with a whole hash in it, only its newline can be amiss
                    self.torn = line
                    break
                record = self._decode(line.removesuffix(b"\n"))
                yield record
                self._advance(record, len(line), ended=ended)

    def had_head(self, head: str, length: int | None = None) -> bool:
        """Return whether this hash was the head of the log, when it had `length` records if that is given."""
        try:
            wanted = bytes.fromhex(head)
        except ValueError:
            return False
        return wanted in (self._hashes if length is None else self._hashes[max(0, length - 1) : length])

    def append(self, body: dict[str, Any]) -> Record:
        """Add one record, and return when it is on the disk.

        Guarantee: after an error nothing was added or, if even shortening the file failed, at most one line that the
        next reader counts or replaces.
        """
        if self.torn:
            self._replace_torn_line()
        line, record = _encode(self.length, self.head, body)
        data = line if self._ended else b"\n" + line
        with self._translate_errors("written"):
            try:
                _write(self._fd, data)
                os.fsync(self._fd)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._fd, self._end)
                    os.fsync(self._fd)
                raise
        self._advance(record, len(data), ended=True)
        return record

    def sync(self) -> None:
        """Flush what was read to the disk: its writer may have been killed before it could."""
        with self._translate_errors("written"):
            os.fsync(self._fd)

    def _replace_torn_line(self) -> None:
        """Replace the unfinished line by a record about it. If this is interrupted, one of the two is at the end."""
        body = {
            "type": "recovered",
            "torn_bytes": len(self.torn),
            "torn_sha256": hashlib.sha256(self.torn).hexdigest(),
            "torn_start": self.torn[:200].decode("ascii", "backslashreplace"),
        }
        line, record = _encode(self.length, self.head, body)
        with self._translate_errors("written"):
            fd = os.open(self.path, os.O_WRONLY)  # the locked one can only append
            try:
                os.ftruncate(fd, self._end + 1)  # one byte of it stays, so that dying here is still seen
                if os.pwrite(fd, line, self._end) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(fd)
            finally:
                os.close(fd)
        self.torn = b""
        self._advance(record, len(line), ended=True)

    def _advance(self, record: Record, size: int, *, ended: bool) -> None:
        self.length, self.head = record.seq + 1, record.hash
        self._hashes.append(bytes.fromhex(record.hash))
        self._end, self._ended = self._end + size, ended

    def _decode(self, line: bytes) -> Record:
        payload = line[:-_HASH_BYTES] + b"}"
        digest = hashlib.sha256(payload).hexdigest()
        if line[-_HASH_BYTES:] != _hash_field(digest):
            what = "is not a ledger's header, or was changed" if self.length == 0 else "was changed"
            raise LedgerDamaged(
                f"Line {self.length + 1} of {self.path} {what}: it does not match its hash.", fix=RESTORE
            )
        try:
            body = json.loads(payload)
            follows = (body.pop("seq"), body.pop("prev")) == (self.length, self.head)
            follows &= isinstance(body.get("code"), str | None)
            record = Record(self.length, digest, at=body.pop("at"), code=body.pop("code", None), body=body)
        except (ValueError, KeyError, TypeError, AttributeError):  # hashed, but not by us
            follows = False
        if not follows:
            raise LedgerDamaged(
                f"Line {self.length + 1} of {self.path} does not follow the one before: "
                "lines were removed, added or moved.",
                fix=RESTORE,
            )
        return record

    def _check_known_tail(self) -> None:
        """Check that the last known record is still in its place, so that the file was not cut short or replaced."""
        known = _hash_field(self.head)
        if self.length and os.pread(self._fd, len(known), self._end - self._ended - len(known)) != known:
            raise LedgerDamaged(
                f"{self.path} no longer holds its line {self.length}: it was cut short or replaced.", fix=RESTORE
            )

    @contextmanager
    def _translate_errors(self, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            raise LedgerUnavailable(
                f"{self.path} could not be {done} ({error.strerror}); what it held, it still holds.",
                fix="Make room on the disk, and try again." if full else "Check the disk, and try again.",
            ) from None


def _encode(seq: int, prev: str, body: dict[str, Any]) -> tuple[bytes, Record]:
    at, code = datetime.now(UTC).isoformat(timespec="milliseconds"), read_code_version().stamp
    line = {"seq": seq, "prev": prev, "at": at, "code": code, **body}
    payload = json.dumps(line, separators=(",", ":"), allow_nan=False).encode()
    digest = hashlib.sha256(payload).hexdigest()
    return payload[:-1] + _hash_field(digest) + b"\n", Record(seq, digest, at=at, code=code, body=body)


def _hash_field(digest: str) -> bytes:
    return f',"hash":"{digest}"}}'.encode()


def _write(fd: int, data: bytes) -> None:
    while data:  # one write, except on a nearly full disk, which takes a part and fails at the next
        data = data[os.write(fd, data) :]
