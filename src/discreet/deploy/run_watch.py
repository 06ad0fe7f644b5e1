"""Notice that a run's process has ended without a word: it holds the run's lock as long as it lives.

Flower notices a killed process only by its missing heartbeats, after 45 to 60 seconds.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from discreet.durable_files import is_locked

LOOK_SECONDS = 0.5  # between two checks of the lock
GRACE_SECONDS = 5.0  # for Flower to pass on the last lines of a process that failed


@dataclass
class RunWatch:
    """Watches a run from its first line on, and calls `stop` if its process has ended without leaving an end file.

    Attributes:
        lock: The run's lock file.
        end: The file in which a run says how it ended.
        stop: Called at most once, in another thread.
    """

    lock: Path
    end: Path
    stop: Callable[[], object]
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to watch, unless that was done. The run must have printed a line: only then it surely has its lock."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    @property
    def is_started(self) -> bool:
        return self._thread is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()  # the lock's folder may go after this

    def _watch(self) -> None:
        while is_locked(self.lock):
            if self._is_over.wait(LOOK_SECONDS):
                return
        if not self._is_over.wait(GRACE_SECONDS) and not self.end.exists():
            self.stop()
