"""End a run's process when the SuperLink that started it has ended."""

import os
import signal
import threading
import time

LOOK_SECONDS = 0.5  # between two checks for the parent
END_SECONDS = 10.0  # between SIGTERM and the forced end; flwr's handler of SIGTERM takes up to five


def end_with_parent(grace: float = END_SECONDS) -> None:
    """End this process when the process that started it has ended: by SIGTERM, and by force after `grace` seconds.

    Flower's own monitor raises SIGINT in its thread. A run takes that as the wish to stop after the round. But a round
    does not end without a SuperLink, which flwr retries for ever, and a main thread that waits for another thread does
    not get the signal. flwr's handler of SIGTERM runs in the main thread and can wait for ever too: for a lock that the
    thread held when the signal came. In all these cases the process would go on and hold the run's lock. A forced end
    loses nothing: every finished round is on disk.
    """
    threading.Thread(target=_watch, args=(os.getppid(), grace), daemon=True).start()


def _watch(parent: int, grace: float) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)  # unlike raise_signal, it interrupts the main thread while it waits
    time.sleep(grace)
    os._exit(1)
