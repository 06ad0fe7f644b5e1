"""The replies to a server's messages, by flwr's Runtime API: each is taken once all its bytes are there.

A reply is announced before its bytes are there, and a client that dies in between never sends them. flwr's Grid would
ask for them 500 times, up to ten seconds apart, before it looks at another reply. Here a reply without its bytes is as
none: it holds up no other, and is waited for no longer than a reply that was never announced, for which the SuperLink
gives up once the node's heartbeats are missed.
"""

from dataclasses import dataclass, field

from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.proto.runtime_pb2 import PullAppMessagesRequest
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.superlink.grid.http_grid import HttpGrid

from discreet.engines.flower.announced_messages import AnnouncedMessage
from discreet.engines.flower.message_content import unpack


@dataclass
class Replies:
    """What came to the messages of one exchange. `awaited` holds those that may still be answered, each with its node.

    What a reply says of its sender is not looked at: it counts as the answer of the node that was asked.
    """

    grid: Grid
    awaited: dict[str, int]
    answers: dict[int, bytes] = field(default_factory=dict)
    _announced: list[AnnouncedMessage] = field(default_factory=list)

    def poll(self) -> bool:
        """Take what has come; whether anything has, if only the announcement of a reply."""
        if not isinstance(self.grid, HttpGrid):  # a simulation's, whose replies are whole
            came = list(self.grid.pull_messages(self.awaited))
            for message in came:
                self._settle(message.metadata.reply_to_message_id, unpack(message))
            return bool(came)
        new = self._pull_announced(self.grid)
        pending = self._announced + new
        self._announced = [each for each in pending if not self._is_finished(each, self.grid)]
        self._give_up_on_nodes_that_are_gone()
        return bool(new) or len(self._announced) < len(pending)

    def _pull_announced(self, grid: HttpGrid) -> list[AnnouncedMessage]:
        """Replies that have been announced since the last look; the SuperLink names each once."""
        asked = self.awaited.keys() - {each.reply_to for each in self._announced}
        if not asked:
            return []
        came = grid._runtime_client.PullMessages(PullAppMessagesRequest(message_ids=asked))
        announced = map(AnnouncedMessage.read, came.messages_list, came.message_object_trees)
        return [each for each in announced if each.reply_to in self.awaited]

    def _is_finished(self, reply: AnnouncedMessage, grid: HttpGrid) -> bool:
        """Whether the reply is here, or will never be."""
        try:
            if not reply.fetch_objects(grid._runtime_client.PullObject, grid.node):
                return False
        except ObjectPullError:
            self._settle(reply.reply_to, None)
            return True
        received = ConfirmMessageReceivedRequest(node=grid.node, run_id=reply.run, message_object_id=reply.name)
        grid._runtime_client.ConfirmMessageReceived(received)
        self._settle(reply.reply_to, _read_content(reply))
        return True

    def _give_up_on_nodes_that_are_gone(self) -> None:
        if not self._announced:
            return
        there = set(self.grid.get_node_ids())
        for each in self._announced:
            if self.awaited[each.reply_to] not in there:
                self._settle(each.reply_to, None)
        self._announced = [each for each in self._announced if each.reply_to in self.awaited]

    def _settle(self, name: str, data: bytes | None) -> None:
        """The answer to this message; None where there will be none."""
        node = self.awaited.pop(name)
        if data is not None:
            self.answers[node] = data


def _read_content(reply: AnnouncedMessage) -> bytes | None:
    """What a client sent; None where nobody can read it."""
    try:
        return unpack(reply.message())
    except Exception:  # noqa: BLE001 - whatever a client sends, the run goes on without it
        return None
