"""Hold a node's poll for messages until the server has sent one, so that many nodes cost little while nothing happens.

A poll costs the SuperLink some 10 ms of a processor, so that 200 nodes that poll every two seconds leave it no time for
anything else. The run's process notes in a file when it begins to send messages and when it has sent them; the proxy
looks at the file, and forwards a poll when messages were sent or when the node does not want to wait longer.

While messages are being sent, no node learns of one: Flower lets a node delete the objects of a message that it knows,
or register them as its own, and the server's next object is then refused.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple

POLL_PATH = "/v1/fleet/pull-messages"
HOLD_HEADER = "discreet-hold"  # of a poll: the seconds that the node will wait; a stock SuperNode sends none
MAX_HOLD_SECONDS = 10.0  # a node's call fails after 30 without an answer
CHECK_SECONDS = 0.02  # between two looks at the file
MAX_DIGITS = 6  # of the seconds in the header
BEGUN, SENT = b"+", b"."


class SentState(NamedTuple):
    """What the file says: its length, and whether messages are being sent."""

    length: int
    is_sending: bool


@dataclass(frozen=True)
class SentMark:
    """The file in which the server notes that it sends messages.

    Attributes:
        path: The file. It need not exist.
    """

    path: Path

    @contextmanager
    def mark_sending(self) -> Iterator[None]:
        """Tell the proxy that messages are being sent while the block lasts. Without it they arrive too, only later."""
        self._append(BEGUN)
        try:
            yield
        finally:
            self.advance()

    def advance(self) -> None:
        """Tell the proxy that messages were sent."""
        self._append(SENT)

    def _append(self, letter: bytes) -> None:
        with suppress(OSError), self.path.open("ab") as file:
            file.write(letter)

    def read(self) -> SentState:
        """Return what the file says; nothing was sent if it can't be read."""
        try:
            with self.path.open("rb") as file:
                length = file.seek(0, 2)
                file.seek(max(0, length - 1))
                return SentState(length, file.read(1) == BEGUN)
        except OSError:
            return SentState(0, False)


class Outcome(Enum):
    """What becomes of a poll that was held."""

    FORWARD = auto()
    EMPTY = auto()  # messages are still being sent: the node may ask again
    GONE = auto()  # the node has left: a message that is pulled for it would be lost


@dataclass
class HeldPolls:
    """The polls that the proxy holds, and what came for a node while messages were being sent.

    Attributes:
        mark: What the run's process writes.
    """

    mark: SentMark
    _forwarded: dict[bytes, int] = field(default_factory=dict)  # the mark when a node's last poll was forwarded
    _kept: dict[bytes, list[Any]] = field(default_factory=lambda: defaultdict(list))
    _change: "asyncio.Task[None] | None" = None

    async def wait(self, node: bytes, header: bytes, left: Callable[[], Awaitable[Any]]) -> Outcome:
        """Wait until messages were sent since this node's last poll was forwarded, or until its time is over.

        Args:
            node: The node's public key.
            header: The value of `HOLD_HEADER`, empty if the node has sent none.
            left: Waits until the node has closed its connection.
        """
        state, seconds = self.mark.read(), _read_seconds(header)
        if state.is_sending or (seconds and self._forwarded.get(node) == state.length):
            gone = asyncio.ensure_future(left())
            held = MAX_HOLD_SECONDS if state.is_sending else seconds
            await asyncio.wait({gone, self._next_change(state)}, timeout=held, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return Outcome.GONE
            gone.cancel()
            state = self.mark.read()
        if state.is_sending:
            return Outcome.EMPTY
        self._forwarded[node] = state.length
        return Outcome.FORWARD

    def forget(self, node: bytes) -> None:
        """Take note that this node's last poll was not forwarded after all."""
        self._forwarded.pop(node, None)

    def keep_while_sending(self, node: bytes, answer: Any) -> bool:
        """Keep an answer of the SuperLink until all messages are sent. Returns whether it is kept, and not for now."""
        if is_sending := self.mark.read().is_sending:
            self._kept[node].append(answer)
        return is_sending

    def take_kept(self, node: bytes) -> Any | None:
        """Remove and return an answer that was kept for this node, None if there is none that it may have now."""
        if not self._kept.get(node) or self.mark.read().is_sending:
            return None
        return self._kept[node].pop(0)

    def _next_change(self, since: SentState) -> "asyncio.Task[None]":
        """Return the task that ends when messages have been sent: one for all polls, however many are held."""
        if self._change is None or self._change.done():
            self._change = asyncio.ensure_future(self._watch(since))
        return self._change

    async def _watch(self, before: SentState) -> None:
        while (state := self.mark.read()).is_sending or state == before:
            await asyncio.sleep(CHECK_SECONDS)


def _read_seconds(header: bytes) -> float:
    """Return the seconds for which a node will wait, within limits; 0 for anything that is no number."""
    if len(header) > MAX_DIGITS or not header.replace(b".", b"", 1).isdigit():
        return 0.0
    return min(MAX_HOLD_SECONDS, float(header))
