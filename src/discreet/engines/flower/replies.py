"""The replies to a server's messages, over flwr's Runtime API: each is taken when all of its bytes have arrived.

A reply is announced before its bytes arrive, and a client that dies in between never sends them. flwr's Grid would ask
for them 500 times, up to ten seconds apart, before it looks at another reply. Here such a reply delays no other. It is
awaited no longer than a reply that was never announced: the SuperLink gives up when the node's heartbeats are missing.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import httpx
from flwr.proto.runtime_pb2 import PullAppMessagesRequest
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.superlink.grid.http_grid import HttpGrid

from discreet.engines.flower.announced_messages import AnnouncedMessage
from discreet.engines.flower.message_content import MAX_BYTES, unpack

Answer: TypeAlias = tuple[int, bytes]  # the node that was asked, and what it answered


@dataclass
class Replies:
    """The replies of one exchange.

    What a reply claims about its sender is ignored: it counts as the answer of the node that was asked.

    Attributes:
        awaited: Messages that may still be answered, with the node that was asked.
        max_bytes: Most bytes of a reply. One that has more is as none.
    """

    grid: Grid
    awaited: dict[str, int]
    max_bytes: int = MAX_BYTES
    _announced: list[AnnouncedMessage] = field(default_factory=list)

    def poll(self) -> Iterator[Answer | None]:
        """Yield the answers that have arrived, and None for other news: an announcement, or the end of a reply.

        An answer may be as large as the model, so each is fetched when the one before has been dealt with.
        """
        if not isinstance(self.grid, HttpGrid):  # in a simulation, replies arrive in full
            for message in self.grid.pull_messages(self.awaited):
                yield self._settle(message.metadata.reply_to_message_id, unpack(message))
            return
        new = self._pull_announced(self.grid)
        yield from (None for _ in new)
        pending, self._announced = deque(self._announced + new), []
        while pending:
            reply = pending.popleft()
            if self._is_finished(reply, self.grid):
                yield self._settle(reply.reply_to, _read_content(reply))
            else:
                self._announced.append(reply)
        self._give_up_on_nodes_that_are_gone()

    def _pull_announced(self, grid: HttpGrid) -> list[AnnouncedMessage]:
        """Return the replies that were announced since the last poll. The SuperLink announces each once."""
        asked = self.awaited.keys() - {reply.reply_to for reply in self._announced}
        if not asked:
            return []
        came = grid._runtime_client.PullMessages(PullAppMessagesRequest(message_ids=asked))
        announced = map(AnnouncedMessage.read, came.messages_list, came.message_object_trees)
        return [reply for reply in announced if reply.reply_to in self.awaited]

    def _is_finished(self, reply: AnnouncedMessage, grid: HttpGrid) -> bool:
        """Fetch the reply. Returns whether it has arrived in full, or never will."""
        try:
            if not reply.fetch_objects(grid._runtime_client.PullObject, grid.node, self.max_bytes):
                return False
        except (ObjectPullError, httpx.HTTPStatusError):
            reply.contents.clear()
            return True
        with suppress(httpx.HTTPError):  # an unconfirmed reply stays in the SuperLink's database until the run ends
            reply.confirm(grid._runtime_client.ConfirmMessageReceived, grid.node)
        return True

    def _give_up_on_nodes_that_are_gone(self) -> None:
        if not self._announced:
            return
        there = set(self.grid.get_node_ids())
        for reply in self._announced:
            if self.awaited[reply.reply_to] not in there:
                self._settle(reply.reply_to, None)
        self._announced = [reply for reply in self._announced if reply.reply_to in self.awaited]

    def _settle(self, name: str, data: bytes | None) -> Answer | None:
        """Wait for this message's answer no longer. Returns the answer, None if there will be none."""
        node = self.awaited.pop(name)
        return None if data is None else (node, data)


def _read_content(reply: AnnouncedMessage) -> bytes | None:
    """Return the bytes that a client sent, None if they can't be read, and forget the objects that they came in."""
    try:
        return unpack(reply.message())
    except Exception:  # noqa: BLE001 - whatever a client sends, the run goes on without it
        return None
    finally:
        reply.contents.clear()
