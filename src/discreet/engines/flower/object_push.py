"""Push the objects of messages to the SuperLink, of which only some are encoded at a time.

flwr encodes all objects of a message before it pushes the first, which for a large model is a second copy of it.
"""

from collections.abc import Callable, Collection, Mapping

from flwr.supercore.inflatable.inflatable_object import InflatableObject
from flwr.supercore.inflatable.inflatable_utils import push_objects

ENCODED_OBJECTS = 4  # at a time


def push_in_turn(
    objects: Mapping[str, InflatableObject], wanted: Collection[str], push: Callable[[str, bytes], None]
) -> None:
    """Push the wanted ones of these objects with flwr's function `push`."""
    names = [name for name in objects if name in wanted]
    for begin in range(0, len(names), ENCODED_OBJECTS):
        push_objects({name: objects[name] for name in names[begin : begin + ENCODED_OBJECTS]}, push)
