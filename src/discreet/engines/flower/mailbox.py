"""A node's messages, by flwr's Fleet API: taken once all their bytes are there, answered, and the answers sent.

A message is announced before its bytes are there, and a server that dies in between never sends them. flwr would ask
for them 500 times before it looks at the next message; here the next one is not held up.
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
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import make_push_object_fn_protobuf
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, push_objects
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode.fleet_http_client import FleetHttpClient

from discreet.engines.flower.announced_messages import AnnouncedMessage
from discreet.engines.flower.carrier import Responder
from discreet.engines.flower.message_content import pack, unpack

MAX_PENDING = 16  # messages that are announced and not there: of more than that, the oldest are given up


class PendingMessage(NamedTuple):
    """A message, and until when somebody waits for its answer."""

    message: AnnouncedMessage
    until: float


@dataclass
class Mailbox:
    """What was announced to a node, in the order that it came. Whatever a server sends, the node stays."""

    client: FleetHttpClient
    node: Node
    answer: Responder
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _announced: deque[PendingMessage] = field(default_factory=lambda: deque(maxlen=MAX_PENDING))

    def announce(self, came: fleet.PullMessagesResponse) -> None:
        with self._survive_faults():
            for proto, tree in zip(came.messages_list, came.message_object_trees, strict=True):
                message = AnnouncedMessage.read(proto, tree)
                self._announced.append(PendingMessage(message, self.clock() + message.ttl))

    def answer_pending(self) -> bool:
        """Answer every message that is whole by now; whether there was one, or one was given up."""
        left = [each for each in self._announced if not self._is_settled(each)]
        dealt = len(left) < len(self._announced)
        self._announced = deque(left, MAX_PENDING)
        return dealt

    def _is_settled(self, each: PendingMessage) -> bool:
        with self._survive_faults():
            if not each.message.fetch_objects(self.client.PullObject, self.node):
                return self.clock() >= each.until
            try:
                self._answer(each.message)
            except httpx.TransportError:  # the same answer, which is kept, goes out once more
                return self.clock() >= each.until
        return True

    @contextmanager
    def _survive_faults(self) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, ObjectPullError):
            pass  # the server went away, or the run is over
        except Exception as fault:  # noqa: BLE001 - whatever a server sends, the node stays
            self.say(f"A message was not understood ({type(fault).__name__}), and is left alone.")

    def _answer(self, taken: AnnouncedMessage) -> None:
        received = ConfirmMessageReceivedRequest(node=self.node, run_id=taken.run, message_object_id=taken.name)
        self.client.ConfirmMessageReceived(received)
        message = taken.message()
        request = unpack(message)
        if request is None:
            return  # not ours: whoever sent it gets no answer
        TaskIdentity.run_id, TaskIdentity.node_id = taken.run, self.node.node_id  # else flwr builds no Message
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
            push_objects(
                get_all_nested_objects(reply),
                make_push_object_fn_protobuf(self.client.PushObject, self.node, run, pushed.session_id),
                object_ids_to_push=set(pushed.objects_to_push),
            )
