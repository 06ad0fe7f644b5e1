"""Assign parcels to workers: each has its own range of the round, and one that finishes early takes from others."""

from collections import deque
from collections.abc import Sequence


class WorkSplit:
    """Ranges of parcels of similar cost, one for each worker.

    A worker gets nearly the same range in every round, so that it needs the data of few other clients.
    """

    def __init__(self, costs: Sequence[float], workers: int) -> None:
        self._costs = costs
        self._left: list[deque[int]] = [deque() for _ in range(workers)]
        before, every = 0.0, sum(costs)
        for parcel, cost in enumerate(costs):
            self._left[min(workers - 1, int(workers * (before + cost / 2) / every))].append(parcel)
            before += cost

    def take(self, worker: int) -> int | None:
        """Take the worker's next parcel, else the last one of the worker with most left. None if no parcel is left."""
        if self._left[worker]:
            return self._left[worker].popleft()
        fullest = max(self._left, key=lambda left: sum(self._costs[parcel] for parcel in left))
        return fullest.pop() if fullest else None

    def return_parcel(self, worker: int, parcel: int) -> None:
        """Put back the parcel of a lost worker. Other workers take it and the rest of the range."""
        self._left[worker].appendleft(parcel)
