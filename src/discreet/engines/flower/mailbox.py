"""A node's mailbox, over flwr's Fleet API: it answers each message when all of its bytes have arrived.

A message is announced before its bytes arrive, and a server that dies in between never sends them. flwr would ask for
them 500 times before it looks at the next message; here the next message does not wait.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx
from flwr.app import Message
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto import fleet_pb2 as fleet
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import make_push_object_fn_protobuf
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.supernode.fleet_http_client import FleetHttpClient

from discreet.engines.flower.announced_messages import AnnouncedMessage
from discreet.engines.flower.carrier import Responder
from discreet.engines.flower.message_content import MAX_BYTES, pack, unpack
from discreet.engines.flower.object_push import push_in_turn

MAX_PENDING = 16  # announced messages that have not arrived; the oldest are dropped beyond that


class PendingMessage(NamedTuple):
    """An announced message, and the time until which its sender waits for an answer."""

    message: AnnouncedMessage
    until: float


@dataclass
class Mailbox:
    """The messages that were announced to a node, in order. No message can end the node."""

    client: FleetHttpClient
    node: Node
    answer: Responder
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _announced: deque[PendingMessage] = field(default_factory=lambda: deque(maxlen=MAX_PENDING))

    def announce(self, response: fleet.PullMessagesResponse) -> None:
        """Add the messages that a response announces."""
        with self._survive_faults():
            for proto, tree in zip(response.messages_list, response.message_object_trees, strict=True):
                message = AnnouncedMessage.read(proto, tree)
                self._announced.append(PendingMessage(message, self.clock() + message.ttl))

    def has_pending(self) -> bool:
        """Whether a message was announced and is not answered yet."""
        return bool(self._announced)

    def answer_pending(self) -> bool:
        """Answer every message that has arrived in full. Returns whether one was answered or dropped."""
        left = [pending for pending in self._announced if not self._is_settled(pending)]
        dealt = len(left) < len(self._announced)
        self._announced = deque(left, MAX_PENDING)
        return dealt

    def _is_settled(self, pending: PendingMessage) -> bool:
        """Answer the message if it has arrived. Returns whether it is answered or its time is over."""
        with self._survive_faults():
            if not pending.message.fetch_objects(self.client.PullObject, self.node, MAX_BYTES):
                return self.clock() >= pending.until
            try:
                self._answer(pending.message)
            except httpx.TransportError:  # try again: the journal keeps the answer
                return self.clock() >= pending.until
        return True

    @contextmanager
    def _survive_faults(self) -> Iterator[None]:
        """Print errors inside the block instead of raising them; ignore those of the network."""
        try:
            yield
        except (httpx.HTTPError, ObjectPullError):
            pass  # the server has left, or the run is over
        except Exception as fault:  # noqa: BLE001 - whatever a server sends, the node stays
            self.say(f"Ignored a message that could not be read ({type(fault).__name__}).")

    def _answer(self, announced: AnnouncedMessage) -> None:
        announced.confirm(self.client.ConfirmMessageReceived, self.node)
        message = announced.message()
        request = unpack(message)
        if request is None:
            return  # not one of ours: no answer
        self._send(Message(pack(self.answer(request)), reply_to=message))

    def _send(self, reply: Any) -> None:
        run = reply.metadata.run_id
        reply.metadata.__dict__["_message_id"] = reply.object_id
        with no_object_id_recompute():
            pushed = self.client.PushMessages(
                fleet.PushMessagesRequest(
                    node=self.node,
                    messages_list=[message_to_proto(remove_content_from_message(reply))],
                    message_object_trees=[get_object_tree(reply)],
                    clientapp_runtime_list=[0.0],
                )
            )
            push = make_push_object_fn_protobuf(self.client.PushObject, self.node, run, pushed.session_id)
            push_in_turn(get_all_nested_objects(reply), set(pushed.objects_to_push), push)
