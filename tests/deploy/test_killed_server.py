"""A run's process or the SuperLink alone is killed: whoever submitted the run reads what happened, and it goes on."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.deploy.deployment_lock import SUPERLINK_LOCK
from tests.deploy.example_sites import SECURE, with_long_waits
from tests.deploy.progress import is_running
from tests.deploy.real_deployment import CLIENTS, RealDeployment, run_server

pytest.importorskip("flwr")
pytestmark = pytest.mark.deploy

ROUNDS = 6
AGREED = with_long_waits(SECURE.replace("rounds = 3", f"rounds = {ROUNDS}"))


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[RealDeployment]:
    with run_server(tmp_path, AGREED, ROUNDS) as made:
        made.join(*CLIENTS)
        yield made


def test_a_run_goes_on_after_its_process_and_after_the_superlink_was_killed(deployment: RealDeployment) -> None:
    site, processes = deployment.site, deployment.processes
    deployment.submit("first")
    deployment.wait_for_rounds("first", 1)
    os.kill(process_in(site.lock_path("first")), signal.SIGKILL)
    assert deployment.submit_exit_code("first") == 2
    assert "The process of the run 'first' ended without saying why" in processes.output("submit-first")

    deployment.submit("first")  # at once: Flower takes the killed process for alive
    deployment.wait_for_rounds("first", 3)
    run = process_in(site.lock_path("first"))
    os.kill(process_in(site.server / SUPERLINK_LOCK), signal.SIGKILL)
    assert deployment.submit_exit_code("first") == 2
    assert "The server stopped while the run 'first' was going on." in processes.output("submit-first")
    assert processes.exit_code("server") == 1
    assert "The SuperLink has ended with exit code -9" in processes.output("server")
    processes.wait_until(lambda: not is_running(run), "the run's process to end with its SuperLink")

    processes.discreet("server", "deploy", "server", "site")
    processes.wait_for_words("server", "The server is up")
    deployment.submit("first")
    assert deployment.submit_exit_code("first") == 0, processes.output("submit-first")[-2000:]
    assert len(deployment.rounds("first")) == ROUNDS


def process_in(lock: Path) -> int:
    """Return the id of the process that holds a lock file."""
    return int(lock.read_text())
