"""A run ends with what was not run, whether one process or xdist's workers ran it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.skip_report import group_of, summary_line

ROOT = Path(__file__).resolve().parents[1]
SUITE = """
import pytest

def test_that_passes():
    pass

def test_on_a_device():
    pytest.skip("needs a CUDA device")

@pytest.mark.parametrize("name", ["mnist", "femnist"])
def test_on_real_data(name):
    pytest.skip(f"{name} is not in /data")

@pytest.mark.slow
def test_that_is_slow():
    pass

@pytest.mark.xfail(reason="a known fault")
def test_that_fails_as_expected():
    raise AssertionError
"""
LAST = (
    "Not run: 5 of 7: 2 needing real data that is not here (DISCREET_DATA); 1 slow (make test-slow); "
    "1 needing a CUDA device (make test-gpu); 1 whole file needing no_such_package, which is not installed."
)


def last_line(folder: Path, record: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "tests.skip_report", "-q", "-p", "no:cacheprovider", *options]
    environment = {"PYTHONPATH": str(ROOT), "TEST_RECORD": str(record)}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return result.stdout.splitlines()[-1]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_last_line_names_what_was_not_run_in_groups(tmp_path: Path, workers: int) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: long\n", encoding="utf-8")
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "test_absent.py").write_text(
        "import pytest\npytest.importorskip('no_such_package')\ndef test_it(): pass\n", encoding="utf-8"
    )
    record = tmp_path / "record.jsonl"
    line = last_line(tmp_path, record, "-n", str(workers), "-m", "not slow")
    assert set(line.rstrip(".").split("; ")) == set(LAST.rstrip(".").split("; "))
    if workers:
        return
    assert last_line(tmp_path, record, "-n", "0", "-m", "slow").startswith("Not run: 1 of 2: 1 whole file")
    result = subprocess.run(
        [sys.executable, "-m", "tests.skip_report", record], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "Not run: 4 of 7: 2 needing real data" in result.stdout
    assert "slow" not in result.stdout


def test_a_file_that_another_run_carried_out_is_not_listed() -> None:
    not_run = {"tests/a.py": "needing flwr, which is not installed", "tests/b.py::test_x": "slow (make test-slow)"}
    assert summary_line(["tests/a.py::test_y"], not_run) == "Not run: 1 of 2: 1 slow (make test-slow)."
    assert summary_line(["tests/a.py::test_y", "tests/b.py::test_x"], not_run) == "Not run: none. All 2 tests were run."


def test_a_reason_without_a_group_is_printed_as_it_is() -> None:
    assert group_of("there Ctrl-C is no signal") == "skipped: there Ctrl-C is no signal"
    assert group_of("") == "skipped: no reason is stated"
