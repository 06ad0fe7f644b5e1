"""Flower's Grid as a carrier: requests go out as messages, replies are asked for until they are there.

`Grid.send_and_receive` asks every three seconds, which would be most of a round; so it is done here by its two halves.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_utils import pull_objects
from flwr.superlink.grid import http_grid

from discreet.engines.flower.waiting import Waiting

RECORD, FIELD = "discreet", "bytes"
KIND = "query"  # one of the four kinds that Flower knows; ours stands in the bytes
AGAIN = 0.05  # seconds until a reply's bytes are asked for again that were not there yet


def packed(data: bytes) -> RecordDict:
    return RecordDict({RECORD: ConfigRecord({FIELD: data})})


def unpacked(message: Message) -> bytes | None:
    """What we sent, if it is that; None for an error of Flower's own, or a stranger's message."""
    if not message.has_content():
        return None
    record = message.content.get(RECORD)
    found = record.get(FIELD) if isinstance(record, ConfigRecord) else None
    return found if isinstance(found, bytes) else None


def hasten() -> None:
    """A reply is announced before its bytes are there. flwr asks for them again after a second, most of a round, and
    has no setting for it; so this process's Grid gets one."""
    http_grid.pull_objects = partial(pull_objects, initial_backoff=AGAIN)


@dataclass(frozen=True)
class GridCarrier:
    grid: Grid
    waiting: Waiting

    def nodes(self) -> list[int]:
        return list(self.grid.get_node_ids())

    def exchange(self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf) -> dict[int, bytes]:
        there, waiting = set(self.nodes()), self.waiting.at_most(limit)
        messages = [
            Message(packed(data), node, KIND, ttl=waiting.timeout) for node, data in requests.items() if node in there
        ]
        left = {sent for sent in self.grid.push_messages(messages) if sent}
        answers: dict[int, bytes] = {}
        over, began = waiting.over(len(left), enough), waiting.clock()
        while left and not over(len(answers)):
            came = list(self.grid.pull_messages(left))
            for message in came:
                left.discard(message.metadata.reply_to_message_id)
                if (found := unpacked(message)) is not None:
                    answers[message.metadata.src_node_id] = found
            if left and not came:
                time.sleep(waiting.pause(waiting.clock() - began))
        return answers
