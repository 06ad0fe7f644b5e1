"""The floor of branch coverage fails when a room is below it, and when the room was not measured at all."""

import json
from pathlib import Path

import pytest

from tests.tools.tool_loader import load_tool

tool = load_tool("branch_coverage")


def write_report(folder: Path, **taken: int) -> Path:
    """Write a report in which each named file has 100 branches, so many of them taken."""
    files = {
        f"src/discreet/{name.replace('__', '/')}.py": {"summary": {"covered_branches": count, "num_branches": 100}}
        for name, count in taken.items()
    }
    path = folder / "report.json"
    path.write_text(json.dumps({"files": files}), encoding="utf-8")
    return path


def test_rooms_at_their_floor_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = write_report(tmp_path, privacy__rdp=95, privacy__ledger__log=95, secure_sums__lattice=95, cli__run=10)
    assert tool.main(report) == 0
    assert capsys.readouterr().out.splitlines()[0] == "  10.0% of 100 branches  cli"


def test_a_room_below_its_floor_fails_and_names_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = write_report(tmp_path, privacy__rdp=100, privacy__ledger__log=94, secure_sums__lattice=100)
    assert tool.main(report) == 1  # privacy as a whole has 97 %, its ledger 94
    out = capsys.readouterr().out
    assert "privacy/ledger must have at least 95%" in out
    assert "    6 missing in privacy/ledger/log.py" in out


def test_a_room_that_was_not_measured_fails(tmp_path: Path) -> None:
    assert tool.main(write_report(tmp_path, privacy__rdp=100, privacy__ledger__log=100)) == 1
