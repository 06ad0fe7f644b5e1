"""Notice that Flower's executor is gone: without it the SuperLink accepts runs and starts none of them."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

EXECUTOR = b"flower-superexec"


@dataclass
class ExecutorWatch:
    """Watches the executor that a SuperLink has started, where the system lists processes as Linux does.

    Attributes:
        superlink: The SuperLink's process id.
    """

    superlink: int
    _was_seen: bool = False

    def has_ended(self) -> bool:
        """Whether the SuperLink had an executor and has none now."""
        is_there = any(map(_is_executor, _children(self.superlink)))
        self._was_seen = self._was_seen or is_there
        return self._was_seen and not is_there


def _children(process: int) -> list[int]:
    found: list[int] = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += map(int, listed.read_text().split())
    return found


def _is_executor(process: int) -> bool:
    """Whether this process is an executor. A process that was killed has no command line left."""
    with suppress(OSError):
        return EXECUTOR in Path(f"/proc/{process}/cmdline").read_bytes()
    return False
