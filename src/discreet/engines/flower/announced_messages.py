"""A message that flwr has announced, some of whose objects may not have arrived yet."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import httpx
from flwr.common.serde import message_from_proto
from flwr.proto.fleet_pb2 import PushMessagesRequest
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
from flwr.supercore.inflatable.inflatable_protobuf_utils import make_pull_object_fn_protobuf
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectUnavailableError,
    inflate_object_from_contents,
)
from google.protobuf.message import DecodeError

from discreet.engines.flower.message_content import MAX_OBJECTS

OTHER_BYTES = 2**16  # of an object of ours, at most, beside the bytes in it: a RecordDict lists its pieces


@dataclass(frozen=True)
class AnnouncedMessage:
    """A message, and those of its objects that have arrived.

    Attributes:
        run: Flower's number of the run.
        name: The message's id.
        reply_to: The id of the message that it answers, empty if it is not a reply.
        ttl: Seconds for which its sender waits for an answer.
        objects: Ids of the objects that make up its content.
        contents: The objects that have arrived.
    """

    run: int
    name: str
    reply_to: str
    ttl: float
    objects: tuple[str, ...]
    contents: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, message: Any, tree: Any) -> "AnnouncedMessage":
        """Read flwr's records of a message without its content, and of the objects that make up the content."""
        about = message_from_proto(message).metadata
        objects = tuple(node.object_id for node in iterate_object_tree(tree))
        return cls(about.run_id, about.message_id, about.reply_to_message_id, about.ttl, objects)

    def fetch_objects(self, pull: Callable[[Any], Any], node: Node, most: int) -> bool:
        """Ask once for each missing object, with flwr's call `pull`.

        Returns:
            Whether all objects have arrived.

        Raises:
            ObjectPullError: An object will never arrive, or the message has more than `most` bytes or more objects
                than any of ours. Fetching a million small ones would take longer than anybody waits for a message.
        """
        if len(self.objects) > MAX_OBJECTS:
            raise ObjectPullError(
                self.name, f"it has {len(self.objects)} objects, and a message of ours has at most {MAX_OBJECTS}."
            )
        pull_object = make_pull_object_fn_protobuf(pull, node, self.run)
        try:
            for name in self.objects:
                if name not in self.contents:
                    self.contents[name] = pull_object(name)
                    self._check_size(most)
        except (ObjectUnavailableError, httpx.TransportError):
            return False
        return True

    def _check_size(self, most: int) -> None:
        size = sum(map(len, self.contents.values()))
        if size > most + OTHER_BYTES * len(self.contents):
            raise ObjectPullError(self.name, f"it has over {size} bytes, and may have {most}.")

    def confirm(self, call: Callable[[Any], Any], node: Node) -> None:
        """Confirm with flwr's call that the message has arrived."""
        call(ConfirmMessageReceivedRequest(node=node, run_id=self.run, message_object_id=self.name))

    def message(self) -> Any:
        """Assemble the message after all objects have arrived. Its content and metadata are what the sender claims."""
        message: Any = inflate_object_from_contents(self.name, self.contents)
        message.metadata.__dict__["_message_id"] = self.name
        return message


def announces_one_reply(body: bytes, most: int) -> bool:
    """Whether a node announces by this request one reply of its own, of at most `most` objects.

    flwr also takes messages in the server's own name and other objects for the same reply, as many as a node likes, and
    registers those of each call in one transaction, during which its database answers nobody.
    """
    try:
        request = PushMessagesRequest.FromString(body)
    except DecodeError:
        return False
    if len(request.messages_list) != 1 or len(request.message_object_trees) != 1:
        return False
    about, tree = request.messages_list[0].metadata, request.message_object_trees[0]
    if not about.reply_to_message_id or about.src_node_id != request.node.node_id:
        return False
    return tree.object_id == about.message_id and sum(1 for _ in islice(iterate_object_tree(tree), most + 1)) <= most
