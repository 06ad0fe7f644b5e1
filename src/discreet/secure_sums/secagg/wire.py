"""Write numbers, tables and sets of clients as bytes, and read them back with every length checked."""

from collections.abc import Collection, Mapping
from typing import NoReturn, TypeAlias

from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_errors import BadMessage

VERSION = 2  # of the protocol: raise it after a release when a message, a field or the order of stages changes
Bytes: TypeAlias = bytes | memoryview  # a vector is large, so it is looked at in place instead of copied
ID_BYTES = 4


class Writer:
    """Collects values as bytes that `Reader` reads back."""

    def __init__(self) -> None:
        self._pieces: list[Bytes] = []

    def number(self, value: int, width: int) -> "Writer":
        self._pieces.append(value.to_bytes(width, "little"))
        return self

    def raw(self, value: Bytes) -> "Writer":
        self._pieces.append(value)
        return self

    def blob(self, value: bytes) -> "Writer":
        """Write bytes of any length, preceded by their length."""
        return self.number(len(value), 8).raw(value)

    def table(self, rows: Mapping[int, bytes]) -> "Writer":
        """Write clients in ascending order, each with bytes of one fixed size."""
        self.number(len(rows), ID_BYTES)
        for client in sorted(rows):
            self.number(client, ID_BYTES).raw(rows[client])
        return self

    def clients(self, chosen: Collection[int], total: int) -> "Writer":
        """Write a set of clients as a bit field over all clients."""
        bits = sum(1 << client for client in chosen)
        return self.number(bits, -(-total // 8))

    def to_bytes(self) -> bytes:
        """Return all that was written."""
        return b"".join(self._pieces)

    def to_saved_bytes(self) -> bytes:
        """Return all that was written with its checksum, for `Reader.open_saved`."""
        content = self.to_bytes()
        return content + key_agreement.digest(content)


class Reader:
    """Reads what `Writer` wrote, and nothing else: each value has one encoding, and no byte is left over."""

    def __init__(self, data: bytes) -> None:
        if not isinstance(data, bytes):
            raise BadMessage(f"A message must be bytes, and got {type(data).__name__}.")
        self._data = memoryview(data)
        self._at = 0

    @classmethod
    def open_saved(cls, data: bytes, mark: bytes, whose: str) -> "Reader":
        """Return a reader of the state that `to_saved_bytes` returned, after its mark; refuse it if a byte differs."""
        content, checksum = data[: -key_agreement.KEY_BYTES], data[-key_agreement.KEY_BYTES :]
        if not content.startswith(mark) or key_agreement.digest(content) != checksum:
            raise BadMessage(
                f"These bytes are not the saved state of a {whose} of this version, or were changed since.",
                fix="Restore the newest whole copy, or begin a new session.",
            )
        reader = cls(content)
        reader.raw(len(mark))
        return reader

    def raw(self, count: int) -> bytes:
        return bytes(self.view(count))

    def view(self, count: int) -> memoryview:
        if count > len(self._data) - self._at:
            self.refuse(f"ends after {len(self._data)} bytes, and {self._at + count} are needed")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.raw(width), "little")

    def blob(self) -> bytes:
        return self.raw(self.number(8))

    def rest(self) -> bytes:
        """Read all that is left."""
        return self.raw(len(self._data) - self._at)

    def client(self, total: int) -> int:
        client = self.number(ID_BYTES)
        if client >= total:
            self.refuse(f"names client {client}, and the last of {total} is {total - 1}")
        return client

    def table(self, size: int, total: int) -> dict[int, bytes]:
        count, before = self.number(ID_BYTES), -1
        if count > total:
            self.refuse(f"has a table of {count} clients, and there are {total}")
        rows: dict[int, bytes] = {}
        for _ in range(count):
            client = self.client(total)
            if client <= before:
                self.refuse(f"names client {client} after client {before}")
            before, rows[client] = client, self.raw(size)
        return rows

    def clients(self, total: int) -> frozenset[int]:
        bits = self.number(-(-total // 8))
        if bits >> total:
            self.refuse(f"marks a client beyond the last of {total}")
        return frozenset(client for client in range(total) if bits >> client & 1)

    @property
    def is_at_end(self) -> bool:
        """Whether everything was read."""
        return self._at == len(self._data)

    def check_end(self) -> None:
        """Refuse a message that holds more than was read."""
        if not self.is_at_end:
            self.refuse(f"has {len(self._data)} bytes, and {self._at} were expected")

    def refuse(self, why: str) -> NoReturn:
        raise BadMessage(
            f"The message {why}.", fix="It was changed on its way, or sent by another version: send it again."
        )
