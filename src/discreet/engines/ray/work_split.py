"""Who plays which parcel: each worker its own stretch of the round, and whoever is done early helps the others."""

from collections import deque
from collections.abc import Sequence


class WorkSplit:
    """Stretches of parcels of about the same cost. A worker has nearly the same stretch in every round, so that it
    holds those clients' data and few others'.
    """

    def __init__(self, costs: Sequence[float], workers: int) -> None:
        self._costs = costs
        self._left: list[deque[int]] = [deque() for _ in range(workers)]
        before, every = 0.0, sum(costs)
        for parcel, cost in enumerate(costs):
            self._left[min(workers - 1, int(workers * (before + cost / 2) / every))].append(parcel)
            before += cost

    def take(self, worker: int) -> int | None:
        """Its own next parcel; else the last one of whoever has most left; None where nothing is."""
        if self._left[worker]:
            return self._left[worker].popleft()
        fullest = max(self._left, key=lambda left: sum(self._costs[parcel] for parcel in left))
        return fullest.pop() if fullest else None

    def return_parcel(self, worker: int, parcel: int) -> None:
        """The worker is gone, and the parcel with it: both the stretch and the parcel are for whoever is free."""
        self._left[worker].appendleft(parcel)
