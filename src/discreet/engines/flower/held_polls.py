"""Hold a node's poll for messages until the server has sent one, so that many nodes cost little while nothing happens.

A poll costs the SuperLink some 10 ms of a processor, so that 200 nodes that poll every two seconds leave it no time for
anything else. The run's process appends a byte to a file whenever it has sent messages; the proxy looks at the file's
length, and forwards a poll when it has changed or when the node does not want to wait longer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POLL_PATH = "/v1/fleet/pull-messages"
HOLD_HEADER = "discreet-hold"  # of a poll: the seconds that the node will wait; a stock SuperNode sends none
MAX_HOLD_SECONDS = 10.0  # a node's call fails after 30 without an answer
CHECK_SECONDS = 0.02  # between two looks at the file
MAX_DIGITS = 6  # of the seconds in the header


@dataclass(frozen=True)
class SentMark:
    """The file whose length changes when the server has sent messages.

    Attributes:
        path: The file. It need not exist.
    """

    path: Path

    def advance(self) -> None:
        """Tell the proxy that messages were sent. They arrive without it too, only later."""
        with suppress(OSError), self.path.open("ab") as file:
            file.write(b".")

    def read(self) -> int:
        """Return the file's length, 0 if it can't be read."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


@dataclass
class HeldPolls:
    """The polls that the proxy holds.

    Attributes:
        mark: What the run's process advances.
    """

    mark: SentMark
    _forwarded: dict[bytes, int] = field(default_factory=dict)  # the mark when a node's last poll was forwarded
    _change: "asyncio.Task[None] | None" = None

    async def wait(self, node: bytes, header: bytes, left: Callable[[], Awaitable[Any]]) -> bool:
        """Wait until messages were sent since this node's last poll was forwarded, or until its time is over.

        Args:
            node: The node's public key.
            header: The value of `HOLD_HEADER`, empty if the node has sent none.
            left: Waits until the node has closed its connection.

        Returns:
            Whether to forward the poll. A message that is pulled for a node that has left would be lost.
        """
        seconds = _read_seconds(header)
        if seconds and self._forwarded.get(node) == self.mark.read():
            gone = asyncio.ensure_future(left())
            await asyncio.wait({gone, self._next_change()}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return False
            gone.cancel()
        self._forwarded[node] = self.mark.read()
        return True

    def _next_change(self) -> "asyncio.Task[None]":
        """Return the task that ends at the next change: one for all polls, however many are held."""
        if self._change is None or self._change.done():
            self._change = asyncio.ensure_future(self._watch(self.mark.read()))
        return self._change

    async def _watch(self, before: int) -> None:
        while self.mark.read() == before:
            await asyncio.sleep(CHECK_SECONDS)


def _read_seconds(header: bytes) -> float:
    """Return the seconds for which a node will wait, within limits; 0 for anything that is no number."""
    if len(header) > MAX_DIGITS or not header.replace(b".", b"", 1).isdigit():
        return 0.0
    return min(MAX_HOLD_SECONDS, float(header))
