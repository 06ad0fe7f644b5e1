"""The replies to a server's messages, over flwr's Runtime API: each is taken when all of its bytes have arrived.

A reply is announced before its bytes arrive, and a client that dies in between never sends them. flwr's Grid would ask
for them 500 times, up to ten seconds apart, before it looks at another reply. Here such a reply delays no other. It is
awaited no longer than a reply that was never announced: the SuperLink gives up when the node's heartbeats are missing.
"""

from dataclasses import dataclass, field

from flwr.proto.runtime_pb2 import PullAppMessagesRequest
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.superlink.grid.http_grid import HttpGrid

from discreet.engines.flower.announced_messages import AnnouncedMessage
from discreet.engines.flower.message_content import unpack


@dataclass
class Replies:
    """The replies of one exchange.

    What a reply claims about its sender is ignored: it counts as the answer of the node that was asked.

    Attributes:
        awaited: Messages that may still be answered, with the node that was asked.
        answers: The answer of each node.
    """

    grid: Grid
    awaited: dict[str, int]
    answers: dict[int, bytes] = field(default_factory=dict)
    _announced: list[AnnouncedMessage] = field(default_factory=list)

    def poll(self) -> bool:
        """Take the replies that have arrived. Returns whether anything has, if only the announcement of a reply."""
        if not isinstance(self.grid, HttpGrid):  # in a simulation, replies arrive in full
            came = list(self.grid.pull_messages(self.awaited))
            for message in came:
                self._settle(message.metadata.reply_to_message_id, unpack(message))
            return bool(came)
        new = self._pull_announced(self.grid)
        pending = self._announced + new
        self._announced = [reply for reply in pending if not self._is_finished(reply, self.grid)]
        self._give_up_on_nodes_that_are_gone()
        return bool(new) or len(self._announced) < len(pending)

    def _pull_announced(self, grid: HttpGrid) -> list[AnnouncedMessage]:
        """Return the replies that were announced since the last poll. The SuperLink announces each once."""
        asked = self.awaited.keys() - {reply.reply_to for reply in self._announced}
        if not asked:
            return []
        came = grid._runtime_client.PullMessages(PullAppMessagesRequest(message_ids=asked))
        announced = map(AnnouncedMessage.read, came.messages_list, came.message_object_trees)
        return [reply for reply in announced if reply.reply_to in self.awaited]

    def _is_finished(self, reply: AnnouncedMessage, grid: HttpGrid) -> bool:
        """Take the reply if it has arrived in full. Returns whether it has, or never will."""
        try:
            if not reply.fetch_objects(grid._runtime_client.PullObject, grid.node):
                return False
        except ObjectPullError:
            self._settle(reply.reply_to, None)
            return True
        reply.confirm(grid._runtime_client.ConfirmMessageReceived, grid.node)
        self._settle(reply.reply_to, _read_content(reply))
        return True

    def _give_up_on_nodes_that_are_gone(self) -> None:
        if not self._announced:
            return
        there = set(self.grid.get_node_ids())
        for reply in self._announced:
            if self.awaited[reply.reply_to] not in there:
                self._settle(reply.reply_to, None)
        self._announced = [reply for reply in self._announced if reply.reply_to in self.awaited]

    def _settle(self, name: str, data: bytes | None) -> None:
        """Store the answer to a message, None if there will be none."""
        node = self.awaited.pop(name)
        if data is not None:
            self.answers[node] = data


def _read_content(reply: AnnouncedMessage) -> bytes | None:
    """Return the bytes that a client sent, None if they can't be read."""
    try:
        return unpack(reply.message())
    except Exception:  # noqa: BLE001 - whatever a client sends, the run goes on without it
        return None
