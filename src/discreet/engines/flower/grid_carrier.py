"""Flower's Grid as a carrier: it sends requests as messages and polls for replies.

`Grid.send_and_receive` polls every three seconds, which would be most of a round, so this carrier polls itself.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import httpx
from flwr.app import ConfigRecord, Message
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.runtime_pb2 import PushAppMessagesRequest
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_object import (
    InflatableObject,
    get_all_nested_objects,
    get_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import make_push_object_fn_protobuf
from flwr.supercore.inflatable.inflatable_utils import ObjectPushError
from flwr.superlink.grid.http_grid import HttpGrid

from discreet.engines.flower.flower_errors import SendFailed
from discreet.engines.flower.held_polls import SentMark
from discreet.engines.flower.message_content import MAX_BYTES, cut_shared_pieces, pack
from discreet.engines.flower.object_push import push_in_turn
from discreet.engines.flower.replies import Replies
from discreet.engines.flower.reply_deadline import ReplyDeadline

SHARED_FROM = 2**16  # bytes; fewer travel with each request, since a further object costs a further call
MESSAGE_TYPE = "query"  # one of Flower's message types; our own kind is in the bytes


@dataclass(frozen=True)
class GridCarrier:
    """A carrier over Flower's Grid.

    Attributes:
        waiting: How long it waits for replies.
        sent: Tells the proxy that messages were sent, for which nodes' polls are held.
        max_bytes: Most bytes of a reply.
    """

    grid: Grid
    waiting: ReplyDeadline
    sent: SentMark
    max_bytes: int = MAX_BYTES
    sleep: Callable[[float], None] = time.sleep

    def nodes(self) -> list[int]:
        return list(self.grid.get_node_ids())

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Iterator[tuple[int, bytes]]:
        there, waiting = set(self.nodes()), self.waiting.limit_timeout(limit)
        asked = {node: data for node, data in requests.items() if node in there}
        if len(shared) < SHARED_FROM:
            asked, shared = {node: data + shared for node, data in asked.items()}, b""
        with self.sent.mark_sending():
            sent = self._send(asked, cut_shared_pieces(shared), waiting.timeout)
        replies = Replies(self.grid, sent, self.max_bytes)
        del shared
        is_over, last_reply = waiting.start(len(replies.awaited), enough), waiting.clock()
        answered = 0
        while replies.awaited and not is_over(answered):
            has_news = False
            for event in replies.poll():
                has_news = True
                if event is not None:
                    answered += 1
                    answer = [event]
                    del event  # else it would be held here while it is added up
                    yield answer.pop()
            if has_news:
                last_reply = waiting.clock()
            else:
                self.sleep(waiting.pause(waiting.clock() - last_reply))

    def _send(self, requests: Mapping[int, bytes], shared: list[ConfigRecord], ttl: float) -> dict[str, int]:
        """Send each node its request and the shared pieces. Returns the node of each message that was accepted."""
        messages = [Message(pack(data, shared), node, MESSAGE_TYPE, ttl=ttl) for node, data in requests.items()]
        try:
            pushed = set(
                _push(self.grid, messages) if isinstance(self.grid, HttpGrid) else self.grid.push_messages(messages)
            )
        except (ObjectPushError, httpx.HTTPError) as error:
            raise SendFailed(
                f"The SuperLink did not take the messages to the clients: {_reason(error)}.",
                fix="Start the run again by its name: it continues after its last finished round.",
            ) from error
        nodes = {message.metadata.message_id: message.metadata.dst_node_id for message in messages}
        return {name: node for name, node in nodes.items() if name in pushed}


def _reason(error: ObjectPushError | httpx.HTTPError) -> str:
    if isinstance(error, ObjectPushError):
        return "it refused a part of one"
    return f"it answered {error.response.status_code}" if isinstance(error, httpx.HTTPStatusError) else "it is away"


def _push(grid: HttpGrid, messages: list[Message]) -> list[str]:
    """Push messages as `HttpGrid.push_messages` does, but with few of their objects encoded at a time."""
    objects: dict[str, InflatableObject] = {}
    with no_object_id_recompute():
        for message in messages:
            message.metadata.__dict__["_message_id"] = message.object_id
            objects.update(get_all_nested_objects(message))
        request = PushAppMessagesRequest(
            messages_list=[message_to_proto(remove_content_from_message(message)) for message in messages],
            message_object_trees=[get_object_tree(message) for message in messages],
        )
        pushed = grid._runtime_client.PushMessages(request)
        push = make_push_object_fn_protobuf(
            grid._runtime_client.PushObject, grid.node, grid.run.run_id, pushed.session_id
        )
        push_in_turn(objects, set(pushed.objects_to_push), push)
    return list(pushed.message_ids)
