"""Notice that Flower's executor is gone: without it the SuperLink accepts runs and starts none of them."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

EXECUTOR = b"flower-superexe"  # the first 15 letters of its command
DEAD = (b"Z", b"X")  # states of a process that has ended


@dataclass
class ExecutorWatch:
    """Watches the executor that a SuperLink has started, where the system lists processes as Linux does.

    Attributes:
        superlink: The SuperLink's process id.
    """

    superlink: int
    _was_seen: bool = False

    def has_ended(self) -> bool:
        """Whether the SuperLink had an executor and has none now. One that it has not waited for is listed as dead.

        Other processes that the SuperLink starts and ends, such as at its start, say nothing.
        """
        states = [state for name, state in map(_read_process, _children(self.superlink)) if name == EXECUTOR]
        self._was_seen = self._was_seen or bool(states)
        return self._was_seen and all(state in DEAD for state in states)


def _children(process: int) -> list[int]:
    found: list[int] = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += map(int, listed.read_text().split())
    return found


def _read_process(process: int) -> tuple[bytes, bytes]:
    """Return the name and the state of a process, which is dead if it is no longer listed."""
    with suppress(OSError):
        name, _, rest = Path(f"/proc/{process}/stat").read_bytes().partition(b"(")[2].rpartition(b") ")
        return name, rest[:1]
    return b"", DEAD[0]
