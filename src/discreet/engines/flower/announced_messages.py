"""A message that flwr has announced: its objects, of which some may not be there yet."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from flwr.common.serde import message_from_proto
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
from flwr.supercore.inflatable.inflatable_protobuf_utils import make_pull_object_fn_protobuf
from flwr.supercore.inflatable.inflatable_utils import ObjectUnavailableError, inflate_object_from_contents


@dataclass(frozen=True)
class AnnouncedMessage:
    """`name` is the message's own, `reply_to` that of the message which it answers, if it answers one."""

    run: int
    name: str
    reply_to: str
    ttl: float
    objects: tuple[str, ...]
    contents: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, message: Any, tree: Any) -> "AnnouncedMessage":
        """From flwr's records of a message without its content, and of the objects that make up the content."""
        about = message_from_proto(message).metadata
        objects = tuple(each.object_id for each in iterate_object_tree(tree))
        return cls(about.run_id, about.message_id, about.reply_to_message_id, about.ttl, objects)

    def fetch_objects(self, pull: Callable[[Any], Any], node: Node) -> bool:
        """Ask once for each object that is missing, with flwr's call `pull`; whether all are here now.

        Raises flwr's ObjectPullError where an object will never come.
        """
        pull_object = make_pull_object_fn_protobuf(pull, node, self.run)
        try:
            for each in self.objects:
                if each not in self.contents:
                    self.contents[each] = pull_object(each)
        except (ObjectUnavailableError, httpx.TransportError):
            return False
        return True

    def message(self) -> Any:
        """The whole message, once all its objects are here. What is in it, its metadata too, is the sender's word."""
        message: Any = inflate_object_from_contents(self.name, self.contents)
        message.metadata.__dict__["_message_id"] = self.name
        return message
