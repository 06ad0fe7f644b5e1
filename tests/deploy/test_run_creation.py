"""A run whose process is killed while the run is being created can be submitted again, and blocks no other run."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

FEWEST_CHANGES = 10  # a key, a folder, and the files in it


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = [sys.executable, "-m", "tests.deploy.creation_crashes", str(tmp_path_factory.mktemp("creation"))]
    ran = subprocess.run(
        script, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_run_was_killed_before_each_change_of_a_file(crashes: dict[str, Any]) -> None:
    assert crashes["killed"] >= FEWEST_CHANGES
    assert crashes["last"] == 0


def test_what_killed_runs_leave_does_not_hinder_another_run(crashes: dict[str, Any]) -> None:
    assert crashes["other"] == 0


def test_each_killed_run_can_be_submitted_again_and_nothing_of_its_first_start_is_left(crashes: dict[str, Any]) -> None:
    assert crashes["again"] == [0] * crashes["killed"]
    assert crashes["drafts"] == []
