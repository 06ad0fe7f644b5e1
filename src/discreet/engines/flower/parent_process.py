"""End a run's process when the SuperLink that started it has ended."""

import os
import signal
import threading
import time

LOOK_SECONDS = 0.5  # between two checks for the parent


def end_with_parent() -> None:
    """Send SIGTERM to this process when the process that started it has ended.

    Flower's own monitor raises SIGINT in its thread. A run takes that as the wish to stop after the round. But a round
    does not end without a SuperLink, which flwr retries for ever, and a main thread that waits for another thread does
    not get the signal. So the process would go on and hold the run's lock.
    """
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)  # unlike raise_signal, it interrupts the main thread while it waits
