"""Ctrl-C: the first asks to stop after the round, the second stops at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    asked: bool = False


@contextmanager
def graceful() -> Iterator[Stop]:
    """Inside, a first interrupt only sets `asked`. Signals reach the main thread alone; elsewhere nothing changes."""
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
