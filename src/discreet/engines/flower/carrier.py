"""The contract of a carrier: bring bytes to clients and their replies back, over any network."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeAlias

LOG_PREFIX = "discreet: "  # begins each of our lines in Flower's log
Responder: TypeAlias = Callable[[bytes], bytes]  # answers a request; never raises


class Carrier(Protocol):
    """A network of numbered nodes. Which client is at which node is not known to the carrier."""

    def nodes(self) -> list[int]:
        """Return the nodes that are online now."""

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Iterator[tuple[int, bytes]]:
        """Send each node its request, and yield each node and its reply as soon as the reply has arrived.

        A reply may be as large as the model, so the carrier holds none that it has yielded.

        Args:
            requests: The request for each node.
            enough: Number of replies after which the carrier waits only a short time for the others.
            limit: Most seconds to wait.
            shared: Bytes that follow each request. They may be as large as the model, and are stored once.
        """
