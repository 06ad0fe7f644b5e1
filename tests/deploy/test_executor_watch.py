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

EXECUTOR = "#!{python}\nimport time\ntime.sleep(600)\n"
PARENT = """
import subprocess, sys, time
if len(sys.argv) > 1:
    started = subprocess.Popen(sys.argv[1])
    if len(sys.argv) > 2:
        started.wait()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end_all()


def write_program(path: Path) -> Path:
    path.write_text(EXECUTOR.format(python=sys.executable))
    path.chmod(0o755)
    return path


@pytest.fixture
def parent(processes: Processes, tmp_path: Path) -> int:
    """A process that has started a `flower-superexec` and does not look after it, as a SuperLink."""
    script = write_program(tmp_path / "flower-superexec")
    processes.start("superlink", sys.executable, "-c", PARENT, str(script))
    processes.wait_for_words("superlink", "ready")
    superlink = processes.started["superlink"].pid
    processes.wait_until(lambda: bool(descendants(superlink)), "the executor")
    return superlink


@pytest.mark.parametrize("looks_before", [True, False])
def test_a_killed_executor_is_noticed_though_the_superlink_lives_on(
    processes: Processes, parent: int, looks_before: bool
) -> None:
    """It may be killed before the first look: a server that waited for its start would wait for good."""
    watch = ExecutorWatch(parent)
    assert not looks_before or not watch.has_ended()
    os.kill(descendants(parent)[0], signal.SIGKILL)
    processes.wait_until(watch.has_ended, "the end of the executor to be noticed")
    assert not processes.has_ended("superlink")


def test_a_superlink_that_has_not_started_its_executor_yet_is_not_ended(processes: Processes) -> None:
    processes.start("superlink", sys.executable, "-c", PARENT)
    processes.wait_for_words("superlink", "ready")
    assert not ExecutorWatch(processes.started["superlink"].pid).has_ended()


def test_another_process_that_the_superlink_starts_and_ends_is_not_its_executor(
    processes: Processes, tmp_path: Path
) -> None:
    """Until it runs its own program it has the SuperLink's name. On a machine that reads slowly that takes a while."""
    program = write_program(tmp_path / "flower-superlink")
    processes.start("superlink", sys.executable, "-c", PARENT, str(program), "and wait for it")
    superlink = processes.started["superlink"].pid
    processes.wait_until(lambda: bool(descendants(superlink)), "the other process")
    watch = ExecutorWatch(superlink)
    assert not watch.has_ended()
    os.kill(descendants(superlink)[0], signal.SIGKILL)
    processes.wait_for_words("superlink", "ready")
    assert not watch.has_ended()
