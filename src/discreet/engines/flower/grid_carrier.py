"""Flower's Grid as a carrier: it sends requests as messages and polls for replies.

`Grid.send_and_receive` polls every three seconds, which would be most of a round, so this carrier polls itself.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid

from discreet.engines.flower.held_polls import SentMark
from discreet.engines.flower.message_content import pack
from discreet.engines.flower.replies import Replies
from discreet.engines.flower.reply_deadline import ReplyDeadline

MESSAGE_TYPE = "query"  # one of Flower's message types; our own kind is in the bytes


@dataclass(frozen=True)
class GridCarrier:
    """A carrier over Flower's Grid.

    Attributes:
        waiting: How long it waits for replies.
        sent: Tells the proxy that messages were sent, for which nodes' polls are held.
    """

    grid: Grid
    waiting: ReplyDeadline
    sent: SentMark
    sleep: Callable[[float], None] = time.sleep

    def nodes(self) -> list[int]:
        return list(self.grid.get_node_ids())

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf
    ) -> Iterator[tuple[int, bytes]]:
        there, waiting = set(self.nodes()), self.waiting.limit_timeout(limit)
        messages = [
            Message(pack(data), node, MESSAGE_TYPE, ttl=waiting.timeout)
            for node, data in requests.items()
            if node in there
        ]
        pushed = set(self.grid.push_messages(messages))
        self.sent.advance()
        nodes = {message.metadata.message_id: message.metadata.dst_node_id for message in messages}
        replies = Replies(self.grid, {name: node for name, node in nodes.items() if name in pushed})
        is_over, last_reply = waiting.start(len(replies.awaited), enough), waiting.clock()
        answered = 0
        while replies.awaited and not is_over(answered):
            has_news = False
            for event in replies.poll():
                has_news = True
                if event is not None:
                    answered += 1
                    yield event
            if has_news:
                last_reply = waiting.clock()
            else:
                self.sleep(waiting.pause(waiting.clock() - last_reply))
