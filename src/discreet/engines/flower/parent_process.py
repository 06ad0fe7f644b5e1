"""A run's process ends with the SuperLink that it belongs to."""

import os
import signal
import threading
import time

LOOK_SECONDS = 0.5  # seconds between two looks for the parent


def end_with_parent() -> None:
    """From now on this process is told to end (SIGTERM) when the one that started it is gone.

    Flower's own monitor raises SIGINT in its thread. A run takes that as the wish to stop after the round; but a round
    does not end without a SuperLink, which flwr asks again for ever, and a main thread that waits for another one
    never hears of it. So the process would live on and hold the run's lock.
    """
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)  # unlike raise_signal, it interrupts whatever the main thread waits for
