"""Ctrl-C and SIGTERM: the first one asks to stop after the round, the second one stops at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    """Whether the user has asked to stop after the current round."""

    is_requested: bool = False


@contextmanager
def catch_interrupts(stop: StopRequest | None = None, *, terminate: bool = True) -> Iterator[StopRequest]:
    """Turn the first interrupt into a request to stop. Outside the main thread, signals are left alone.

    Args:
        stop: The request to set, where several blocks share one. None makes a new one.
        terminate: Whether to treat SIGTERM like Ctrl-C. A run with real clients does not: a round may wait forever for
            a SuperLink that is gone, and SIGTERM must then end the process.
    """
    request = StopRequest() if stop is None else stop

    def handle(number: int, frame: FrameType | None) -> None:
        if request.is_requested:
            raise KeyboardInterrupt
        request.is_requested = True

    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    signals = (signal.SIGINT, signal.SIGTERM) if terminate else (signal.SIGINT,)
    before = {number: signal.signal(number, handle) for number in signals}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
