"""Only the runs that a page lacks are made."""

from pathlib import Path

import pytest

from discreet.experiment.comparison import cells
from discreet.experiment.comparison.cells import Cell
from discreet.experiment.comparison.comparison_results import ResultsFile
from experiments.common.conduct import conduct
from tests.small_experiment import SMALL


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "small.toml").write_text(SMALL)
    return cells.expand_cells([tmp_path / "small.toml"], overrides=("rounds=1",))


def test_runs_are_made_once_wherever_they_are_kept(small: list[Cell], tmp_path: Path):
    home, out = tmp_path / "home", tmp_path / "out"
    assert conduct(small, 1, home)
    first = ResultsFile(home).read_by_key()
    assert [each["seed"] for each in first.values()] == [0]
    assert conduct(small, 2, home, out)
    assert ResultsFile(home).read_by_key() == first
    assert [each["seed"] for each in ResultsFile(out).read_by_key().values()] == [1]
    before = ResultsFile(out).path.read_bytes()
    assert conduct(small, 2, home, out)
    assert ResultsFile(out).path.read_bytes() == before


def test_no_run_is_started_when_time_is_up(small: list[Cell], tmp_path: Path):
    assert not conduct(small, 1, tmp_path / "home", limit_s=0.0)
    assert ResultsFile(tmp_path / "home").read_by_key() == {}


def test_a_result_tells_what_rounds_said_on_average(small: list[Cell], tmp_path: Path):
    conduct(small, 1, tmp_path / "home")
    (found,) = ResultsFile(tmp_path / "home").read_by_key().values()
    assert set(found["diagnostics"]) == {"norm"}  # examples are clipped here, not updates: of those nothing is kept
    assert found["training"] is None
