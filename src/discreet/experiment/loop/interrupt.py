"""Ctrl-C and SIGTERM: the first asks to stop after the round, the second stops at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    is_requested: bool = False


@contextmanager
def catch_interrupts(*, terminate: bool = True) -> Iterator[StopRequest]:
    """Inside, a first interrupt only sets `asked`. Signals reach the main thread alone; elsewhere nothing changes.

    With `terminate`, SIGTERM is taken as Ctrl-C is. A run with real clients leaves it alone: its round may wait for
    ever, for a SuperLink that is gone, and SIGTERM is what ends its process then.
    """
    stop = StopRequest()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_requested:
            raise KeyboardInterrupt
        stop.is_requested = True

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    taken = (signal.SIGINT, signal.SIGTERM) if terminate else (signal.SIGINT,)
    before = {number: signal.signal(number, handle) for number in taken}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
