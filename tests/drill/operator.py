"""The operator of a drill: kills one process, then only starts again what has ended, by the documented commands."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from discreet.deploy.deployment_lock import SUPERLINK_LOCK
from tests.deploy.progress import descendants
from tests.deploy.real_deployment import CLIENTS, RealDeployment
from tests.drill.kills import AT_RANDOM, Kill

LONGEST = 300.0  # seconds until a kill counts as one that did not end
RETRY = 2.0  # seconds between two starts of the same command


class Operator:
    """Keeps the processes of one run going."""

    def __init__(self, deployment: RealDeployment, name: str) -> None:
        self.deployment, self.name, self.processes = deployment, name, deployment.processes
        self._tried: dict[str, float] = {}

    def is_finished(self) -> bool:
        return (self.deployment.site.run(self.name) / "guarantee.json").exists() and self._has_ended("submit")

    def strike(self, kill: Kill) -> bool:
        """Wait for the moment and kill. Returns whether the moment came before the run was finished."""
        folder, begin = self.deployment.folder, time.monotonic()
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
        site = self.deployment.site
        try:
            if kill.victim == "client":
                self.processes.kill_tree(kill.client)
            elif kill.victim == "server":
                self.processes.kill_tree("server")
            elif kill.victim == "superlink":
                os.kill(int((site.server / SUPERLINK_LOCK).read_text()), signal.SIGKILL)
            elif kill.victim == "executor":
                os.kill(_executor(self.processes.started["server"].pid), signal.SIGKILL)
            else:
                os.kill(int(site.lock_path(self.name).read_text()), signal.SIGKILL)
        except (ProcessLookupError, OSError, ValueError, StopIteration):
            return False
        return True

    def recover(self, kill: Kill) -> float | None:
        """Restart what ended until two new rounds are recorded. Returns the seconds, or None if that took too long.

        A process that dies with another one may still record the round that it had finished.
        """
        began, before = time.monotonic(), len(self.deployment.rounds(self.name))
        while time.monotonic() - began < LONGEST:
            self.restart_what_ended()
            lines = self.deployment.rounds(self.name)
            whole = not kill.is_at_client or (lines and lines[-1]["clients"] == len(CLIENTS))
            if self.is_finished() or (len(lines) > before + 1 and whole):
                return time.monotonic() - began
            time.sleep(0.1)
        return None

    def finish(self) -> bool:
        """Restart what ended until the run is finished. Returns whether it got there."""
        while not self.is_finished():
            if self.recover(Kill("none", "end")) is None:
                return False
        return True

    def restart_what_ended(self) -> None:
        for name in ("server", *CLIENTS):
            if self.processes.has_ended(name) and self._is_due(name):
                command = "server" if name == "server" else "client"
                self.processes.discreet(name, "deploy", command, "site" if name == "server" else name)
        if self._has_ended("submit") and not self.is_finished() and self._is_due("submit"):
            self.deployment.submit(self.name)

    def _has_ended(self, what: str) -> bool:
        name = f"{what}-{self.name}"
        return name not in self.processes.started or self.processes.has_ended(name)

    def _is_due(self, name: str) -> bool:
        now = time.monotonic()
        if now - self._tried.get(name, -RETRY) < RETRY:
            return False
        self._tried[name] = now
        return True


def _executor(server: int) -> int:
    """Return the process that Flower starts runs with."""
    for each in descendants(server):
        with suppress(OSError):
            if b"flower-superexec" in Path(f"/proc/{each}/cmdline").read_bytes():
                return each
    raise StopIteration
