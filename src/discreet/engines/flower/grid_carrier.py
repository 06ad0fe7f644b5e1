"""Flower's Grid as a carrier: requests go out as messages, replies are asked for until they are there.

`Grid.send_and_receive` asks every three seconds, which would be most of a round; so it is done here by its two halves.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid

from discreet.engines.flower.message_content import pack
from discreet.engines.flower.replies import Replies
from discreet.engines.flower.reply_deadline import ReplyDeadline

MESSAGE_TYPE = "query"  # one of the four kinds that Flower knows; ours stands in the bytes


@dataclass(frozen=True)
class GridCarrier:
    grid: Grid
    waiting: ReplyDeadline
    sleep: Callable[[float], None] = time.sleep

    def nodes(self) -> list[int]:
        return list(self.grid.get_node_ids())

    def exchange(self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf) -> dict[int, bytes]:
        there, waiting = set(self.nodes()), self.waiting.capped(limit)
        messages = [
            Message(pack(data), node, MESSAGE_TYPE, ttl=waiting.timeout)
            for node, data in requests.items()
            if node in there
        ]
        pushed = set(self.grid.push_messages(messages))
        nodes = {message.metadata.message_id: message.metadata.dst_node_id for message in messages}
        replies = Replies(self.grid, {name: node for name, node in nodes.items() if name in pushed})
        over, heard = waiting.start(len(replies.awaited), enough), waiting.clock()
        while replies.awaited and not over(len(replies.answers)):
            if replies.poll():
                heard = waiting.clock()
            else:
                self.sleep(waiting.pause(waiting.clock() - heard))
        return replies.answers
