"""A run's process ends when its parent is gone, although it uses SIGINT for something else."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.processes import Processes
from tests.deploy.progress import is_running

# The child waits for another thread, without a limit, as flwr does when it sends a message to a SuperLink that is gone.
RUN = """
import os, signal, threading
from discreet.engines.flower.parent_process import end_with_parent
signal.signal(signal.SIGINT, lambda *_: None)
{on_sigterm}
end_with_parent({grace})
print("process", os.getpid(), flush=True)
threading.Event().wait()
"""
PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]], start_new_session=True)
"""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end_all()


# The handler waits for a lock that the main thread holds, as flwr's does if the signal comes while it logs.
DEADLOCK = "signal.signal(signal.SIGTERM, lambda *_: threading.Event().wait())"


@pytest.mark.parametrize(("on_sigterm", "grace"), [("", ""), (DEADLOCK, "1")], ids=["by itself", "by force"])
def test_a_run_ends_when_its_parent_is_killed_and_not_before(processes: Processes, on_sigterm: str, grace: str) -> None:
    processes.start("parent", sys.executable, "-c", PARENT, RUN.format(on_sigterm=on_sigterm, grace=grace))
    processes.wait_for_words("parent", "process")
    run = int(processes.output("parent").split()[1])
    assert is_running(run)
    processes.end("parent", signal.SIGKILL)
    processes.wait_until(lambda: not is_running(run), "the run to end")
