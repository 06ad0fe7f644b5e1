"""Real processes for tests: each in a group of its own, with its output in a file, and ended by its own number."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

DISCREET = str(Path(sys.executable).with_name("discreet"))


@dataclass
class Processes:
    folder: Path
    started: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, name: str, *command: str, settings: dict[str, str] | None = None) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "1000", **(settings or {})}
        with open(self.folder / f"{name}.log", "ab") as log:
            self.started[name] = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        return self.started[name]

    def discreet(self, name: str, *arguments: str) -> "subprocess.Popen[bytes]":
        return self.start(name, DISCREET, *arguments)

    def call(self, *arguments: str, within: float = 60.0) -> str:
        """A command that ends by itself; what it printed."""
        found = subprocess.run(
            [DISCREET, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=within, check=False
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    def said(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return " ".join(path.read_text(errors="replace").split()) if path.exists() else ""

    def until(self, name: str, words: str, within: float = 60.0) -> None:
        """Wait until the process has said this, or fail with what it said instead."""
        waited(lambda: words in self.said(name), within, lambda: f"{name} never said {words!r}: {self.said(name)}")

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End this process and its children, which are in its group."""
        process = self.started[name]
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=15)

    def kill_tree(self, name: str) -> None:
        """At once, with all that it has started, wherever that is: as when a machine goes down."""
        for each in [*_descendants(self.started[name].pid), self.started[name].pid]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.started[name].wait(timeout=15)

    def end_all(self) -> None:
        for process in self.started.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for name in self.started:
            self.end(name)


def _descendants(pid: int) -> list[int]:
    """Children and their children, as Linux lists them."""
    found = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, listed.read_text().split()):
            found += [child, *_descendants(child)]
    return found


def waited(ready: Callable[[], bool], within: float, failed: Callable[[], str]) -> None:
    until = time.monotonic() + within
    while not ready():
        assert time.monotonic() < until, failed()
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
