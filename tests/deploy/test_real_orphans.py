"""A server of which one process is killed, and not the others, leaves nothing behind: it can be started again."""

import os
import signal
from pathlib import Path

import pytest

from discreet.deploy.deployment_lock import SERVER_LOCK, SUPERLINK_LOCK
from discreet.durable_files import is_locked
from tests.deploy.example_sites import PLAIN
from tests.deploy.real_deployment import RealDeployment, run_server

pytest.importorskip("flwr")
pytestmark = pytest.mark.deploy


def test_a_killed_process_of_the_server_ends_the_others_and_the_server_starts_again(tmp_path: Path) -> None:
    with run_server(tmp_path, PLAIN, allowed=1) as real:
        real.processes.wait_for_words("server", "The server is up")
        os.kill(int((real.site.server / SERVER_LOCK).read_text()), signal.SIGKILL)
        assert real.processes.exit_code("server") == 1
        assert "The server's process was killed, and its SuperLink was ended." in real.processes.output("server")
        assert not is_locked(real.site.server / SUPERLINK_LOCK)
        real.processes.discreet("server", "deploy", "server", "site")
        real.processes.wait_for_words("server", "The server is up")
        os.kill(real.processes.started["server"].pid, signal.SIGKILL)  # the command alone, as a monitor of memory does
        assert real.processes.exit_code("server") == -signal.SIGKILL
        _wait_for_end(real)
        real.processes.discreet("server", "deploy", "server", "site")
        real.processes.wait_for_words("server", "The server is up")


def _wait_for_end(real: RealDeployment) -> None:
    locks = [real.site.server / lock for lock in (SERVER_LOCK, SUPERLINK_LOCK)]
    real.processes.wait_until(lambda: not any(map(is_locked, locks)), "server and SuperLink to end")
