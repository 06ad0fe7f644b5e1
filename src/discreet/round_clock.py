"""Where the time of a round goes: a clock that is passed to all who take part, and one that measures nothing.

A clock notes the moments at which a round passes from one phase to the next. On a GPU these moments are CUDA events in
the stream of the work: the host never waits for them, and reads them when they have long passed, or at the end.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise
from typing import Any, Protocol

from discreet.lazy_torch import torch
from discreet.round_phases import Phase


class Clock(Protocol):
    """Measures the phases of rounds."""

    def begin_round(self) -> None:
        """Start a round. A round that began before and did not end is forgotten."""

    def end_round(self) -> None:
        """End the round, which counts from now on."""

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        """Count the time of the block as this phase, without the phases inside it. Outside a round, measure nothing."""

    def read(self) -> list[Mapping[Phase, float]]:
        """Return the seconds of each phase, for every round that has ended."""


_NO_PHASE = nullcontext()


class NoClock(Clock):
    """Measures nothing, at no cost."""

    def begin_round(self) -> None:
        return

    def end_round(self) -> None:
        return

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        return _NO_PHASE

    def read(self) -> list[Mapping[Phase, float]]:
        return []


NO_CLOCK = NoClock()


class Moments(Protocol):
    """Takes moments, and later says how far they are apart."""

    def take(self) -> Any:
        """Return a moment, without waiting for it; None where none can be taken."""

    def has_passed(self, moment: Any) -> bool:
        """Whether `seconds` can be asked for this moment without waiting."""

    def seconds(self, first: Any, second: Any) -> float:
        """Return the seconds between two moments; wait for them if they have not passed."""


class HostMoments(Moments):
    """Moments by the clock of this machine."""

    def take(self) -> Any:
        return time.perf_counter()

    def has_passed(self, moment: Any) -> bool:
        return True

    def seconds(self, first: Any, second: Any) -> float:
        return float(second - first)


class CudaMoments(Moments):
    """Moments at which a GPU's current stream has done all that it was given before: CUDA events, which never wait."""

    def take(self) -> Any:
        if torch.cuda.is_current_stream_capturing():  # an event in a recorded graph has no time
            return None
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def has_passed(self, moment: Any) -> bool:
        return bool(moment.query())

    def seconds(self, first: Any, second: Any) -> float:
        second.synchronize()
        return float(first.elapsed_time(second)) / 1000


class PhaseClock(Clock):
    """Measures the phases of rounds by moments, which it reads once they have passed."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._rounds: list[Mapping[Phase, float]] = []
        self._unread: deque[list[tuple[Phase, Any]]] = deque()
        self._marks: list[tuple[Phase, Any]] = []  # from each moment on, this phase
        self._open: list[Phase] = []  # the phases that are open, the innermost last

    @classmethod
    def for_device(cls, device: str) -> PhaseClock:
        """Return a clock for work on this kind of device."""
        return cls(CudaMoments() if device == "cuda" else HostMoments())

    def begin_round(self) -> None:
        self._marks, self._open = [], []
        self._enter(Phase.OTHER)

    def end_round(self) -> None:
        if not self._open:
            return
        self._mark(Phase.OTHER)
        self._unread.append(self._marks)
        self._marks, self._open = [], []
        while self._unread and self._moments.has_passed(self._unread[0][-1][1]):
            self._read_first()

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        return self._measure(phase) if self._open else _NO_PHASE

    @contextmanager
    def _measure(self, phase: Phase) -> Iterator[None]:
        depth = len(self._open)
        self._enter(phase)
        try:
            yield
        finally:
            if len(self._open) > depth:  # the round may have ended inside, by an error
                del self._open[depth:]
                self._mark(self._open[-1])

    def _enter(self, phase: Phase) -> None:
        self._open.append(phase)
        self._mark(phase)

    def _mark(self, phase: Phase) -> None:
        moment = self._moments.take()
        if moment is not None:
            self._marks.append((phase, moment))

    def _read_first(self) -> None:
        marks, seconds = self._unread.popleft(), dict.fromkeys(Phase, 0.0)
        for (phase, first), (_, second) in pairwise(marks):
            seconds[phase] += self._moments.seconds(first, second)
        self._rounds.append({phase: each for phase, each in seconds.items() if each > 0})

    def read(self) -> list[Mapping[Phase, float]]:
        while self._unread:
            self._read_first()
        return list(self._rounds)
