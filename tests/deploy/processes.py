"""Real processes for tests: each in its own group, with its output in a file, and ended by its process number."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.progress import Progress, cpu_wanted, descendants, is_running, wait_until

DISCREET = str(Path(sys.executable).with_name("discreet"))
SHOWN = 2000  # characters of each process's output in the message of a wait that failed


@dataclass
class Processes:
    folder: Path
    started: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    _earlier: dict[str, int] = field(default_factory=dict)  # bytes in each log from earlier processes of that name

    def start(self, name: str, *command: str, settings: Mapping[str, str] | None = None) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "1000", **(settings or {})}
        with open(self.folder / f"{name}.log", "ab") as log:
            self._earlier[name] = log.tell()
            self.started[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_hear_interrupts,
            )

    def discreet(self, name: str, *arguments: str) -> None:
        self.start(name, DISCREET, *arguments)

    def output(self, name: str) -> str:
        """Return all output of processes of this name, in one line."""
        return self._read_log(name, 0)

    def wait_until(self, ready: Callable[[], bool], awaited: str) -> None:
        """Wait as long as any of the processes advances; a failure names `awaited`."""
        progress = Progress(self._log_sizes, self._cpu_times)
        wait_until(ready, progress, lambda: f"Waited for {awaited}. {self._last_words()}")

    def wait_for_words(self, name: str, words: str) -> None:
        """Wait until the process has printed this since it was started. If it ends before, the test fails at once."""
        self.wait_until(lambda: self.has_ended(name) or self.has_said(name, words), f"{name} to say {words!r}")
        assert self.has_said(name, words), f"{name} never said {words!r}. {self._last_words()}"

    def has_said(self, name: str, words: str) -> bool:
        """Whether the process has printed this since it was started."""
        return words in self._read_log(name, self._earlier[name])

    def has_ended(self, name: str) -> bool:
        return self.started[name].poll() is not None

    def exit_code(self, name: str) -> int:
        """Wait until the process has ended by itself."""
        self.wait_until(lambda: self.has_ended(name), f"{name} to end")
        return int(self.started[name].returncode)

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End this process and its children, which are in its group."""
        self._signal_group(name, how)
        self.wait_until(lambda: self.has_ended(name), f"{name} to end after {how.name}")

    def kill_tree(self, name: str) -> None:
        """Kill the process at once with all its descendants, as when a machine goes down.

        All are stopped before the first is killed, so that none starts another or notices a death.
        """
        root, found = self.started[name].pid, set[int]()
        while new := {root, *descendants(root)} - found:
            _signal_each(new, signal.SIGSTOP)
            found |= new
        _signal_each(found, signal.SIGKILL)
        self.wait_until(lambda: self.has_ended(name) and not any(map(is_running, found)), f"{name} to be killed")

    def end_all(self) -> None:
        """Leave nothing behind."""
        for name in self.started:
            if not self.has_ended(name):
                self.kill_tree(name)

    def _read_log(self, name: str, begin: int) -> str:
        text = (self.folder / f"{name}.log").read_bytes()[begin:].decode(errors="replace")
        return " ".join(text.split())

    def _signal_group(self, name: str, how: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.started[name].pid, how)

    def _log_sizes(self) -> dict[Path, int]:
        """Return the sizes of the processes' logs, and of the rounds and ledgers of their runs."""
        found = {}
        for path in [*self.folder.glob("*.log"), *self.folder.rglob("*.jsonl")]:
            with suppress(FileNotFoundError):  # it was renamed
                found[path] = path.stat().st_size
        return found

    def _cpu_times(self) -> dict[int, float]:
        running = [self.started[name].pid for name in self.started if not self.has_ended(name)]
        return cpu_wanted([each for process in running for each in (process, *descendants(process))])

    def _last_words(self) -> str:
        """Return the last output of each process, and whether it has ended."""
        shown = []
        for name, process in self.started.items():
            state = "running" if process.poll() is None else f"ended with {process.returncode}"
            shown.append(f"\n--- {name} ({state}): {self.output(name)[-SHOWN:]}")
        return "".join(shown)


def _hear_interrupts() -> None:
    """Restore SIGINT: tests may run in the background of a shell, whose processes and their children ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _signal_each(processes: set[int], how: signal.Signals) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, how)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
