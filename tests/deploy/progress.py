"""Waiting in tests: a wait lasts while processes write or work, so that tests pass on slow machines."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

STILL = 90.0  # seconds without progress after which a wait fails; longer than any timeout of a healthy deployment
BUSY = 1 / 3  # the fraction of that time for which a working process needs a CPU; an idle SuperLink needs 0.16
LONGEST = 600.0  # seconds that any wait may last
POLL, SAMPLE = 0.05, 1.0  # seconds between two checks of the awaited condition, and of the progress
NANOSECOND = 1e-9


@dataclass
class Progress:
    """Whether processes have advanced lately.

    `written` changes whenever they write something. `wanted` is how long each of them has run or waited for a CPU
    until now, in seconds by process number.
    """

    written: Callable[[], object]
    wanted: Callable[[], Mapping[int, float]]
    still: float = STILL
    clock: Callable[[], float] = time.monotonic
    _latest: tuple[float, object, Mapping[int, float]] = field(init=False)

    def __post_init__(self) -> None:
        self._latest = (self.clock(), self.written(), self.wanted())

    def has_stalled(self) -> bool:
        """Whether nothing was written and no process worked for `still` seconds."""
        since, written, wanted = self._latest
        now = (self.clock(), self.written(), self.wanted())
        worked = max((each - wanted.get(process, 0.0) for process, each in now[2].items()), default=0.0)
        if now[1] != written or worked >= BUSY * self.still:
            self._latest = now
            return False
        return now[0] - since >= self.still


def wait_until(
    ready: Callable[[], bool],
    progress: Progress,
    describe: Callable[[], str],
    *,
    longest: float = LONGEST,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return once `ready`; fail with what `describe` says when progress has stalled, or after `longest` seconds."""
    clock = progress.clock
    began = sampled = clock()
    while not ready():
        if clock() - sampled >= SAMPLE:
            sampled = clock()
            assert not progress.has_stalled(), f"No progress for {progress.still:g} seconds. {describe()}"
            assert sampled - began < longest, f"Not done after {longest:g} seconds. {describe()}"
        pause(POLL)


def cpu_wanted(processes: Iterable[int]) -> dict[int, float]:
    """Return how long all threads of each process have run or waited for a CPU, as Linux counts it, in seconds.

    Unlike the time that they ran, it grows as fast on a machine with many other processes.
    """
    found = {}
    for process in processes:
        total = 0
        for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with suppress(OSError):  # it has ended
                ran, waited, _ = thread.read_text().split()
                total += int(ran) + int(waited)
        found[process] = total * NANOSECOND
    return found


def descendants(process: int) -> list[int]:
    """Return children and their children, as Linux lists them."""
    found = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            for child in map(int, listed.read_text().split()):
                found += [child, *descendants(child)]
    return found


def is_running(process: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] not in "ZX"
