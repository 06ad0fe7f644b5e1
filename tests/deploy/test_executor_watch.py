"""A server whose executor was killed would accept runs and never start one, so its end is noticed."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.deploy.executor_watch import ExecutorWatch
from tests.deploy.processes import Processes
from tests.deploy.progress import descendants

CHILD = "import time; time.sleep(600)"
PARENT = f"""
import subprocess, sys, time
if len(sys.argv) > 1:
    subprocess.Popen([sys.executable, "-c", {CHILD!r}, sys.argv[1]])
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end_all()


def test_a_killed_executor_is_noticed_though_the_superlink_lives_on(processes: Processes) -> None:
    processes.start("superlink", sys.executable, "-c", PARENT, "flower-superexec")
    processes.wait_for_words("superlink", "ready")
    parent = processes.started["superlink"].pid
    watch = ExecutorWatch(parent)
    processes.wait_until(lambda: bool(descendants(parent)), "the executor")
    processes.wait_until(lambda: not watch.has_ended() and watch._was_seen, "the executor to be seen")
    os.kill(descendants(parent)[0], signal.SIGKILL)
    processes.wait_until(watch.has_ended, "the end of the executor to be noticed")
    assert not processes.has_ended("superlink")


def test_a_superlink_that_has_not_started_its_executor_yet_is_not_ended(processes: Processes) -> None:
    processes.start("superlink", sys.executable, "-c", PARENT)
    processes.wait_for_words("superlink", "ready")
    assert not ExecutorWatch(processes.started["superlink"].pid).has_ended()
