"""How long the server waits for replies: long enough for a slow client, and not for one that is gone."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ReplyDeadline:
    """The limits of waiting for replies.

    Attributes:
        timeout: Most seconds to wait.
        patience: Most seconds to wait for the others after enough have answered.
        clock: Returns the time in seconds.
    """

    timeout: float = 600.0
    patience: float = 30.0
    clock: Callable[[], float] = time.monotonic

    @staticmethod
    def pause(waited: float) -> float:
        """Return the seconds until the next poll, a twentieth of the time since the last reply, within limits."""
        return min(2.0, max(0.05, waited / 20))

    def limit_timeout(self, limit: float) -> "ReplyDeadline":
        """Return a copy with a timeout of at most `limit` seconds."""
        return replace(self, timeout=min(self.timeout, limit))

    def start(self, asked: int, enough: int) -> Callable[[int], bool]:
        """Start the clock. Returns a function that says, given the number of answers, whether waiting is over."""
        began = self.clock()
        sufficed: list[float] = []

        def is_over(answered: int) -> bool:
            now = self.clock()
            if answered >= enough and not sufficed:
                sufficed.append(now)
            late = bool(sufficed) and now - sufficed[0] >= self.patience
            return answered >= asked or late or now - began >= self.timeout

        return is_over
