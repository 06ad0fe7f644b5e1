"""What the submitter of a run sees: only our lines, how it ended, and that Ctrl-C also ends it on the server."""

import errno
import json
import os
import sys
from datetime import datetime
from pathlib import Path

import pytest

from discreet import durable_files
from discreet.deploy import flower_commands, run_watch, superlink
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.deployment_status import read_status
from discreet.deploy.entry_points import main
from discreet.deploy.submission_log import RunStopped, follow_run
from discreet.errors import InvalidInput
from tests.deploy.example_sites import SECURE, Wire, copy_site

SAID = "\x1b[92mINFO \x1b[0m:      "
FLOWERS = "Successfully started run 17"
ENDED = {"error": None, "exit_code": 0}


def print_lines(lines: list[str], end: Path | None = None) -> list[str]:
    """Return a command that prints these lines, as Flower's would, and writes the run's end file."""
    program = f"print({chr(10).join(lines)!r}, flush=True)\n"
    if end is not None:
        program += f"import pathlib; pathlib.Path({str(end)!r}).write_text({json.dumps(ENDED)!r})"
    return [sys.executable, "-c", program]


@pytest.fixture
def site(tmp_path: Path) -> DeploymentFolder:
    made = copy_site(tmp_path, SECURE)
    made.end_file("first").parent.mkdir()
    return made


def by_flower(site: DeploymentFolder, heard: list[str]) -> None:
    """Call the server's part as Flower's process does."""
    main(lambda *_: Wire({}), {"folder": str(site.folder), "name": "first"}, heard.append)


def test_our_own_lines_are_passed_on_and_flowers_are_not(site: DeploymentFolder) -> None:
    heard: list[str] = []
    lines = [FLOWERS, f"{SAID}discreet: round 1 of 3", f"{SAID}Start `flwr-serverapp` process", "discreet: done"]
    found = follow_run(site, "first", print_lines(lines, site.end_file("first")), {}, heard.append)
    assert heard == ["round 1 of 3", "done"]
    assert found == ENDED


def test_an_error_is_not_said_twice(site: DeploymentFolder) -> None:
    heard: list[str] = []
    follow_run(
        site, "first", print_lines([f"{SAID}discreet: Error: It is spent."], site.end_file("first")), {}, heard.append
    )
    assert not heard


def test_a_run_that_ends_without_a_word_is_told_in_flowers_last_words(site: DeploymentFolder) -> None:
    """An end file of an earlier start is not used for this one."""
    site.end_file("first").write_text(json.dumps(ENDED))
    box = ["╭─ Error ────╮", "│ \x1b[31mIt is away.\x1b[0m │", "╰────────────╯"]
    with pytest.raises(InvalidInput, match=r"exited with 0 and said: It is away\. Is the server running\?"):
        follow_run(site, "first", print_lines([FLOWERS, *box]), {}, print)


# Flower's command, which does not notice that the run's process has killed itself.
KILLED = """
import os, signal
from pathlib import Path
from discreet.deploy.deployment_folder import DeploymentFolder
if os.fork() == 0:
    held = DeploymentFolder(Path({folder!r})).lock_run("first")
    print("discreet: Run begins.", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
signal.pause()
"""


@pytest.mark.parametrize(
    ("is_server_there", "said"),
    [
        (True, "The process of the run 'first' ended without saying why: it was killed, or it failed. Start the same"),
        (False, "The server stopped while the run 'first' was going on. Start the server again, and then the run"),
    ],
)
def test_a_killed_run_is_reported_although_flowers_command_goes_on(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch, is_server_there: bool, said: str
) -> None:
    monkeypatch.setattr(run_watch, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(flower_commands, "is_listening", lambda address: is_server_there)
    command = [sys.executable, "-c", KILLED.format(folder=str(site.folder))]
    with pytest.raises(InvalidInput) as ended:
        follow_run(site, "first", command, os.environ, lambda line: None)
    assert str(ended.value).startswith(said)
    assert "it continues after its last finished round" in ended.value.fix


def test_a_run_that_fails_is_reported_with_what_flower_said_after_its_last_line(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flower_commands, "is_listening", lambda address: True)
    lines = [FLOWERS, "discreet: round 1 of 3", "Traceback", "ValueError: a fault"]
    with pytest.raises(InvalidInput, match=r"or it failed\. Flower said: ValueError: a fault Start the same name"):
        follow_run(site, "first", print_lines(lines), {}, lambda line: None)


def test_a_run_that_ends_where_nothing_can_be_written_is_reported_as_that(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then Flower's log can't say it either, because it lies on the same disk."""

    def refuse_file(dir: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), dir)

    monkeypatch.setattr(flower_commands, "is_listening", lambda address: True)
    monkeypatch.setattr(durable_files, "TemporaryFile", refuse_file)
    with pytest.raises(InvalidInput) as ended:
        follow_run(site, "first", print_lines([FLOWERS, "discreet: round 1 of 3"]), {}, lambda line: None)
    assert ended.value.problem == (
        f"The process of the run 'first' ended, and nothing can be written to {site.server} (No space left on device)."
    )
    assert ended.value.fix.startswith("Make room there, or make it writable, and start the same name again")


def test_a_run_that_goes_on_is_not_submitted_twice_and_its_end_stays_for_whoever_submitted_it(
    site: DeploymentFolder,
) -> None:
    """The end file may exist while the process that wrote it is still running."""
    heard, end = list[str](), site.end_file("first")
    end.write_text(json.dumps(ENDED))
    with site.lock_run("first"):
        began = datetime(2026, 11, 18, 12, 3, 9)
        os.utime(site.run("first").with_name("first.lock"), (began.timestamp(), began.timestamp()))
        with pytest.raises(InvalidInput) as refused:
            follow_run(site, "first", print_lines([FLOWERS]), {}, heard.append)
        process = os.getpid()
        assert refused.value.problem == (
            f"The run 'first' is already going on, as process {process} since 2026-11-18 12:03:09."
        )
        assert refused.value.fix == (
            f"Wait until it has ended, or end it first, which keeps every finished round: kill {process}"
        )
        with pytest.raises(InvalidInput, match="is already going on"):
            by_flower(site, heard)  # as if two were submitted at the same moment
    assert json.loads(end.read_text()) == ENDED
    assert heard == [f"Error: {refused.value}"]


def test_a_run_that_was_refused_and_left_no_end_is_told_in_our_own_words(site: DeploymentFolder) -> None:
    line = f"{SAID}discreet: Error: The run 'first' is already going on."
    with pytest.raises(InvalidInput) as refused:
        follow_run(site, "first", print_lines([FLOWERS, line]), {}, print)
    assert str(refused.value) == "The run 'first' is already going on."


def test_a_run_that_fails_leaves_its_end_and_is_free_again(site: DeploymentFolder) -> None:
    (site.app / "clients" / "client-0.toml").unlink()
    for _ in range(2):
        with pytest.raises(InvalidInput, match="no card of 'client-0'"):
            by_flower(site, [])
    assert json.loads(site.end_file("first").read_text())["exit_code"] == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (MemoryError(), "The server had not enough memory for the run 'first'. Make memory free"),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried"),
            "The server had not enough memory for the run 'first'. Make memory free",
        ),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "rounds.jsonl"),
            "The process of the run 'first' ended, and nothing can be written to SERVER (No space left on device).",
        ),
        (
            KeyError("weight\nof a layer"),
            "The process of the run 'first' failed: KeyError: 'weight\\nof a layer'. Start the same name again",
        ),
        (ZeroDivisionError(), "The process of the run 'first' failed: ZeroDivisionError. Start the same name again"),
    ],
    ids=["memory", "memory of torch", "disk", "any other", "without words"],
)
def test_a_fault_that_nobody_expected_is_told_in_one_sentence(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch, fault: Exception, words: str
) -> None:
    def fail(*_: object) -> None:
        raise fault

    heard: list[str] = []
    monkeypatch.setattr(DeployedRun, "train", fail)
    with pytest.raises(type(fault)):  # which Flower logs with its traceback
        by_flower(site, heard)
    assert len(heard) == 1
    assert heard[0].startswith(f"Error: {words.replace('SERVER', str(site.server))}")
    assert "\n" not in heard[0]


def test_ctrl_c_ends_the_run_at_the_server_too(site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(superlink, "stop_run", lambda site, number: stopped.append(number) or number == "17")

    def press(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(
        RunStopped, match=r"before its first round ended: nothing was trained yet\. Start the same name"
    ):
        follow_run(site, "first", print_lines([FLOWERS, "discreet: round 1 of 3"]), {}, press)
    site.run("first").mkdir()
    (site.run("first") / "rounds.jsonl").write_text('{"round": 1}\n')
    with pytest.raises(RunStopped, match=r"its rounds so far are in .*/runs/first\. Start the same name"):
        follow_run(site, "first", print_lines([FLOWERS, "discreet: round 2 of 3"]), {}, press)
    assert stopped == ["17", "17"]
    with pytest.raises(
        RunStopped, match="may still go on at the server"
    ):  # it printed no number by which it could be stopped
        follow_run(site, "first", print_lines(["discreet: round 1 of 3"]), {}, press)
    with pytest.raises(RunStopped, match="may still go on at the server"):  # and this one could not be stopped
        follow_run(site, "first", print_lines(["started run 18", "discreet: round 1 of 3"]), {}, press)
    assert stopped == ["17", "17", "18"]


def test_a_run_that_was_stopped_says_so_and_not_what_its_process_said_when_it_ended(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process fails because the SuperLink takes nothing more from it."""
    monkeypatch.setattr(superlink, "list_nodes", lambda root: None)
    stops = iter((True, False))
    monkeypatch.setattr(superlink, "stop_run", lambda site, number: next(stops))
    consequence = {"error": "The SuperLink did not take the messages to the clients.", "exit_code": 1}

    def press(line: str) -> None:
        site.run("first").mkdir(exist_ok=True)
        (site.run("first") / "run.json").write_text("{}")
        site.end_file("first").write_text(json.dumps(consequence))
        raise KeyboardInterrupt

    for state in ("It was stopped by whoever submitted it. Submit the same name", consequence["error"]):
        with pytest.raises(RunStopped):
            follow_run(site, "first", print_lines([FLOWERS, "discreet: round 1 of 3"]), {}, press)
        (run,) = read_status(site).runs
        assert run.state == "stopped"
        assert str(run.stopped).startswith(str(state))
