"""Tests of real processes wait as long as something advances, however slow the machine is, and no longer."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deploy.processes import Processes
from tests.deploy.progress import BUSY, LONGEST, STILL, Progress, cpu_wanted, descendants, is_running, wait_until

HERE = 17  # a process number
SHELL = "/bin/sh"


class Machine:
    """A clock that advances only by waiting, with one process."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines = 0
        self.wanted = 0.0
        self.each_second: Callable[[], None] = lambda: None

    def pause(self, seconds: float) -> None:
        before = int(self.now)
        self.now += seconds
        for _ in range(int(self.now) - before):
            self.each_second()

    def wait(self, seconds: float) -> None:
        """Wait for a condition that holds after this many seconds."""
        progress = Progress(lambda: self.lines, lambda: {HERE: self.wanted}, clock=lambda: self.now)
        wait_until(lambda: self.now >= seconds, progress, lambda: "It said: hello.", pause=self.pause)

    def write(self) -> None:
        if int(self.now) % int(STILL / 2) == 0:
            self.lines += 1

    def work(self, share: float) -> None:
        self.wanted += share


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end_all()


def test_a_wait_lasts_while_lines_are_written_now_and_then(machine: Machine) -> None:
    machine.each_second = machine.write
    machine.wait(5 * STILL)
    assert machine.now >= 5 * STILL


def test_a_wait_lasts_while_a_process_works_without_a_word(machine: Machine) -> None:
    machine.each_second = lambda: machine.work(2 * BUSY)
    machine.wait(5 * STILL)
    assert machine.now >= 5 * STILL


def test_a_wait_without_progress_fails_with_what_was_said_last(machine: Machine) -> None:
    with pytest.raises(AssertionError, match=f"No progress for {STILL:g} seconds. It said: hello."):
        machine.wait(5 * STILL)
    assert STILL <= machine.now < STILL + 3


def test_a_process_that_only_polls_makes_no_progress(machine: Machine) -> None:
    machine.each_second = lambda: machine.work(BUSY / 2)
    with pytest.raises(AssertionError, match="No progress"):
        machine.wait(5 * STILL)


def test_a_wait_that_advances_for_ever_fails_in_the_end(machine: Machine) -> None:
    machine.each_second = machine.write
    with pytest.raises(AssertionError, match=f"Not done after {LONGEST:g} seconds. It said: hello."):
        machine.wait(2 * LONGEST)
    assert LONGEST <= machine.now < LONGEST + 3


def test_a_busy_process_is_seen_to_want_a_cpu() -> None:
    own = os.getpid()
    before, until = cpu_wanted([own])[own], time.monotonic() + 0.1
    while time.monotonic() < until:
        pass
    assert cpu_wanted([own])[own] - before >= 0.05


def test_a_process_that_is_gone_wants_nothing() -> None:
    assert cpu_wanted([2**22 + 1]) == {2**22 + 1: 0.0}
    assert not is_running(2**22 + 1)


def test_a_process_that_ends_without_the_awaited_words_fails_the_wait_at_once(processes: Processes) -> None:
    processes.start("short", SHELL, "-c", "echo it is broken; exit 3")
    with pytest.raises(AssertionError, match=r"short never said 'ready'\.\s+--- short \(ended with 3\): it is broken"):
        processes.wait_for_words("short", "ready")
    assert processes.exit_code("short") == 3


def test_what_an_earlier_process_of_the_name_said_is_not_taken_for_the_words_of_this_one(processes: Processes) -> None:
    processes.start("client", SHELL, "-c", "echo ready")
    assert processes.exit_code("client") == 0
    processes.start("client", SHELL, "-c", "echo it is broken")
    with pytest.raises(AssertionError, match="client never said 'ready'"):
        processes.wait_for_words("client", "ready")
    assert processes.output("client") == "ready it is broken"


def test_an_interrupt_reaches_a_process_though_the_tests_ignore_it(processes: Processes) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        processes.start("asleep", SHELL, "-c", "echo up; mkfifo never; read line <>never")
    finally:
        signal.signal(signal.SIGINT, before)
    processes.wait_for_words("asleep", "up")
    processes.end("asleep", signal.SIGINT)
    assert processes.exit_code("asleep") == -signal.SIGINT


def test_a_killed_tree_leaves_no_process_in_whatever_group_it_is(processes: Processes) -> None:
    """The child has its own session, like Flower's processes."""
    program = "import os; os.setsid(); print('up', flush=True); os.read(0, 1)"
    processes.start("parent", SHELL, "-c", f'mkfifo stay; "{sys.executable}" -c "{program}" <>stay & wait')
    processes.wait_for_words("parent", "up")
    children = descendants(processes.started["parent"].pid)
    assert len(children) == 1
    processes.kill_tree("parent")
    assert not any(map(is_running, children))
    assert processes.exit_code("parent") == -signal.SIGKILL
