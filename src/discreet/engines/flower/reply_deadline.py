"""How long replies are waited for: a run must neither hang on a client that is gone nor run off without a slow one."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ReplyDeadline:
    """For all at most `timeout` seconds; once enough are there, at most `patience` more for the others."""

    timeout: float = 600.0
    patience: float = 30.0
    clock: Callable[[], float] = time.monotonic

    @staticmethod
    def pause(waited: float) -> float:
        """Seconds until the next look: the longer nothing came, the more, but little of what was waited already."""
        return min(2.0, max(0.05, waited / 20))

    def capped(self, limit: float) -> "ReplyDeadline":
        return replace(self, timeout=min(self.timeout, limit))

    def start(self, asked: int, enough: int) -> Callable[[int], bool]:
        """Whether waiting is over, given how many have answered; the clock starts now."""
        began = self.clock()
        sufficed: list[float] = []

        def is_over(answered: int) -> bool:
            now = self.clock()
            if answered >= enough and not sufficed:
                sufficed.append(now)
            late = bool(sufficed) and now - sufficed[0] >= self.patience
            return answered >= asked or late or now - began >= self.timeout

        return is_over
