"""How bytes come to clients and back, whatever the network: the one thing that an engine of real clients needs."""

import math
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

LOG_PREFIX = "discreet: "  # before each line that we say through the network's own log
Responder: TypeAlias = Callable[[bytes], bytes]  # what a client does with a request; it never raises


class Carrier(Protocol):
    """Nodes are numbered by the network; which client is at which node is found out by asking."""

    def nodes(self) -> list[int]:
        """Those that are there now."""

    def exchange(self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf) -> dict[int, bytes]:
        """Send each node its request, and give back what came.

        All are waited for, but not for ever, nor for more than `limit` seconds; and once `enough` have answered, the
        others not for long.
        """
