"""A seeded run that is killed at any point and resumed ends as an uninterrupted one, and pays for each round once."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.ledger import Ledger
from tests.small_experiment import SMALL

CrashResults = dict[str, tuple[int, int, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crashes")


@pytest.fixture(scope="module")
def crash_results(folder: Path) -> CrashResults:
    (folder / "small.toml").write_text(SMALL)
    script = [sys.executable, "-m", "tests.experiment.crashes", str(folder / "small.toml"), str(folder)]
    state = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    ran = subprocess.run(script, capture_output=True, text=True, check=False, env=state)
    assert (ran.returncode, ran.stderr) == (0, "")
    found: CrashResults = json.loads(ran.stdout)
    return found


def test_every_child_was_killed_and_every_resume_came_to_its_end(crash_results: CrashResults):
    assert len(crash_results) == 17
    assert {name: status[:2] for name, status in crash_results.items()} == {
        name: [-signal.SIGKILL, 0] for name in crash_results
    }


def test_the_model_is_bit_for_bit_that_of_an_unbroken_run(crash_results: CrashResults, folder: Path):
    unbroken = (folder / "unbroken" / "model.safetensors").read_bytes()
    for name, (_, _, out) in crash_results.items():
        assert (Path(out) / "model.safetensors").read_bytes() == unbroken, name


def test_the_ledger_shows_every_release_once(crash_results: CrashResults):
    for name, (_, _, out) in crash_results.items():
        path = Path(out) / "ledger.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert Counter(line["type"] for line in lines) == {"open": 1, "reserve": 5, "commit": 5}, name
        assert len({line["key"] for line in lines if line["type"] == "reserve"}) == 5, name
        assert Ledger.open(path).summary()["releases"] == {"committed": 5, "reserved": 0, "voided": 0}, name


def test_the_record_tells_every_round_once_and_as_it_was(crash_results: CrashResults, folder: Path):
    unbroken = [timeless(line) for line in RunRecord.open(folder / "unbroken").read_rounds()]
    assert [line["round"] for line in unbroken] == [1, 2, 3, 4, 5]
    for name, (_, _, out) in crash_results.items():
        assert [timeless(line) for line in RunRecord.open(Path(out)).read_rounds()] == unbroken, name
        assert not list(Path(out).glob(".*.draft")), name


def timeless(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != "seconds"}
