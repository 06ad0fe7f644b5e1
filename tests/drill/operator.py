"""The operator of a drill: kills one process, then only starts again what has ended, by the documented commands."""

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from discreet.deploy.deployment_lock import SUPERLINK_LOCK
from discreet.durable_files import is_locked
from tests.deploy.progress import descendants, is_running
from tests.deploy.real_deployment import CLIENTS
from tests.drill.grounds import Grounds
from tests.drill.kills import AT_RANDOM, Kill

LONGEST = 1200.0  # seconds until a kill counts as one that did not end
RETRY = 2.0  # seconds between two starts of the same command


class Operator:
    """Keeps the processes of one run going."""

    def __init__(self, grounds: Grounds, name: str, rounds: int) -> None:
        self.grounds, self.name, self.rounds_of_run = grounds, name, rounds
        self.processes = grounds.processes
        self._tried: dict[str, float] = {}

    def rounds(self) -> list[dict[str, Any]]:
        """Return the recorded rounds, without a line that a full disk or a kill has cut off."""
        path = self.grounds.site.run(self.name) / "rounds.jsonl"
        found = []
        with suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                found.append(json.loads(line))
        return found

    def is_finished(self) -> bool:
        """Whether all rounds are recorded, and whoever submitted the run has read so."""
        guarantee = self.grounds.site.run(self.name) / "guarantee.json"
        return self._has_ended("submit") and guarantee.exists() and len(self.rounds()) == self.rounds_of_run

    def strike(self, kill: Kill) -> bool:
        """Wait for the moment and kill. Returns whether the moment came before the run was finished."""
        folder, begin = self.grounds.folder, time.monotonic()
        order, reached = folder / f"order-{kill.role}", folder / f"reached-{kill.role}"
        if kill.point != AT_RANDOM:
            order.write_text(kill.point)

        def is_moment() -> bool:
            return reached.exists() if kill.point != AT_RANDOM else time.monotonic() - begin >= kill.delay

        struck = False
        while not struck and time.monotonic() - begin < LONGEST and not self.is_finished():
            self.restart_what_ended()
            struck = is_moment() and self._kill(kill)
            time.sleep(0.05)
        order.unlink(missing_ok=True)
        reached.unlink(missing_ok=True)
        return struck

    def _kill(self, kill: Kill) -> bool:
        """Kill the process if it is alive. Returns whether it was."""
        try:
            victim = self._find(kill)
        except (OSError, ValueError, StopIteration):
            return False
        if not is_running(victim):
            return False
        if kill.victim in ("client", "server"):
            self.processes.kill_tree(kill.client if kill.is_at_client else "server")
        else:
            os.kill(victim, signal.SIGKILL)
        return True

    def _find(self, kill: Kill) -> int:
        site = self.grounds.site
        if kill.victim == "run" and kill.point != AT_RANDOM:
            return int((self.grounds.folder / f"pid-{kill.role}").read_text())  # it may not hold its lock yet
        match kill.victim:
            case "client":
                return self.processes.started[kill.client].pid
            case "server":
                return self.processes.started["server"].pid
            case "superlink":
                return holder_of(site.server / SUPERLINK_LOCK)
            case "executor":
                return _executor(self.processes.started["server"].pid)
            case _:
                return holder_of(site.lock_path(self.name))

    def recover(self, *, with_all_clients: bool = False) -> float | None:
        """Restart what ended until two new rounds are recorded. Returns the seconds, or None if that took too long.

        With `with_all_clients` the last of them must have all clients.

        A process that dies with another one may still record the round that it had finished.
        """
        began, before = time.monotonic(), len(self.rounds())
        while time.monotonic() - began < LONGEST:
            self.restart_what_ended()
            lines = self.rounds()
            whole = not with_all_clients or (lines and lines[-1]["clients"] == len(CLIENTS))
            if self.is_finished() or (len(lines) > before + 1 and whole):
                return time.monotonic() - began
            time.sleep(0.1)
        return None

    def reach_rounds(self, rounds: int) -> None:
        """Restart what ended until so many rounds are recorded, or the run is finished or stands still."""
        until = time.monotonic() + LONGEST
        while len(self.rounds()) < rounds and not self.is_finished() and time.monotonic() < until:
            self.restart_what_ended()
            time.sleep(0.05)

    def finish(self) -> bool:
        """Restart what ended until the run is finished. Returns whether it got there."""
        while not self.is_finished():
            if self.recover() is None:
                return False
        return True

    def restart_what_ended(self) -> None:
        for name in ("server", *CLIENTS):
            if self.processes.has_ended(name) and self._is_due(name):
                self.grounds.start(name)
        is_up = self.processes.has_said("server", "The server is up")
        is_up = is_up and not self.processes.has_ended("server")
        if is_up and self._has_ended("submit") and not self.is_finished() and self._is_due("submit"):
            self.grounds.submit(self.name)

    def _has_ended(self, what: str) -> bool:
        name = f"{what}-{self.name}"
        return name not in self.processes.started or self.processes.has_ended(name)

    def _is_due(self, name: str) -> bool:
        now = time.monotonic()
        if now - self._tried.get(name, -RETRY) < RETRY:
            return False
        self._tried[name] = now
        return True


def holder_of(lock: Path) -> int:
    """Return the process that holds a lock file. Refuse a number that a process left that is gone."""
    if not is_locked(lock):
        raise ProcessLookupError
    return int(lock.read_text())


def _executor(server: int) -> int:
    """Return the process that Flower starts runs with."""
    for each in descendants(server):
        with suppress(OSError):
            if b"flower-superexec" in Path(f"/proc/{each}/cmdline").read_bytes():
                return each
    raise StopIteration
