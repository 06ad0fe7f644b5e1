"""--verbose and --log-file: what happens, on stderr and as JSON lines in a file; silence without them."""

import json
import logging
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from discreet.log_output import FILE_VARIABLE, VERBOSE_VARIABLE
from tests.cli.conftest import Discreet
from tests.small_experiment import small, state  # noqa: F401 - fixtures

ACCOUNT = "account gaussian --noise-multiplier 1 --steps 10 --delta 1e-5"
LINE = re.compile(r"\d\d:\d\d:\d\d (DEBUG|INFO|WARNING|ERROR) +(\w[\w ]*?)(  .*)?")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    monkeypatch.delenv(VERBOSE_VARIABLE, raising=False)


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_without_the_options_nothing_is_logged(discreet: Discreet, small: Path, tmp_path: Path):  # noqa: F811
    ran = discreet(f"run {small} --json --out", tmp_path / "run")
    assert (ran.code, ran.err) == (0, "")
    logger = logging.getLogger("discreet")
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    "line", [f"-v {ACCOUNT} --json", f"{ACCOUNT} --json --verbose", f"account -v {ACCOUNT[8:]} --json"]
)
def test_verbose_is_taken_before_and_after_the_command_and_writes_to_stderr_only(discreet: Discreet, line: str):
    ran = discreet(f"{line} --json")
    assert ran.json["mechanism"] == "gaussian"
    matches = [LINE.fullmatch(each) for each in ran.err.splitlines()]
    assert [match[2] if match else None for match in matches] == ["command started", "command finished"]


def test_a_run_prints_its_milestones_and_with_two_v_its_details(discreet: Discreet, small: Path, tmp_path: Path):  # noqa: F811
    ran = discreet(f"run {small} -v --json --out", tmp_path / "one")
    assert "round finished" in ran.err
    assert "DEBUG" not in ran.err
    ran = discreet(f"-v run {small} -v --json --out", tmp_path / "two")
    assert "DEBUG   checkpoint written" in ran.err


def test_a_log_file_gets_json_lines_at_its_end_and_only_its_owner_reads_it(
    discreet: Discreet,
    small: Path,  # noqa: F811
    tmp_path: Path,
):
    file = tmp_path / "log.jsonl"
    for name in ("first", "second"):
        ran = discreet(f"run {small} --json --log-file {file} --out", tmp_path / name)
        assert ran.err == ""
    lines = read_lines(file)
    assert [line["path"] for line in lines if line["event"] == "run started"] == [
        str(tmp_path / "first"),
        str(tmp_path / "second"),
    ]
    ends = [line for line in lines if line["event"] == "run finished"]
    assert {(line["level"], line["logger"], line["rounds"]) for line in ends} == {
        ("info", "discreet.experiment.loop.run_loop", 4)
    }
    assert {line["process"] for line in lines} == {os.getpid()}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_dash_writes_json_lines_to_stderr(discreet: Discreet):
    ran = discreet(f"{ACCOUNT} --log-file -")
    assert [json.loads(line)["event"] for line in ran.err.splitlines()] == ["command started", "command finished"]


@pytest.mark.parametrize("name", ["missing/log.jsonl", "."])
def test_a_log_file_that_can_t_be_written_is_refused_before_anything_begins(
    discreet: Discreet,
    small: Path,  # noqa: F811
    tmp_path: Path,
    name: str,
):
    ran = discreet(f"run {small} --log-file {tmp_path / name} --out", tmp_path / "run")
    assert ran.code == 2
    assert f"The log file {tmp_path / name} can't be written to" in ran.err
    assert not (tmp_path / "run").exists()


def test_a_failure_is_logged_by_its_class_and_code_without_its_text(discreet: Discreet, tmp_path: Path):
    file = tmp_path / "log.jsonl"
    ran = discreet(f"ledger show {tmp_path / 'canary-ledger'} --log-file {file}")
    assert "canary-ledger" in ran.err
    end = read_lines(file)[-1]
    assert (end["level"], end["event"], end["error"], end["code"]) == ("error", "command failed", "InvalidInput", 2)
    assert "canary-ledger" not in file.read_text()


def test_an_environment_variable_names_the_log_file_of_processes_that_others_start(
    discreet: Discreet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "log.jsonl"))
    discreet(ACCOUNT)
    assert [line["event"] for line in read_lines(tmp_path / "log.jsonl")] == ["command started", "command finished"]


def test_a_rotated_log_file_is_opened_anew(discreet: Discreet, tmp_path: Path):
    from discreet.log_output import write_logs
    from discreet.logs import get_log

    file = tmp_path / "log.jsonl"
    with write_logs(file=str(file)):
        get_log("discreet.test").info("first")
        file.rename(tmp_path / "log.jsonl.1")
        get_log("discreet.test").info("second")
        assert os.environ[FILE_VARIABLE] == str(file)
    assert [line["event"] for line in read_lines(file)] == ["second"]
    assert FILE_VARIABLE not in os.environ


def test_long_commands_list_the_options_and_short_ones_take_them_silently(discreet: Discreet):
    for command in ("", "run", "compare", "deploy server", "deploy client"):
        assert "--log-file FILE" in discreet(f"{command} --help").out
    assert "--log-file" not in discreet("account gaussian --help").out
