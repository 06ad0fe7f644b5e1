"""`discreet init --unit … --against …` writes a file that is right for that promise."""

import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Discreet

TABLE = "hospital,patient,age,ill\n" + "".join(
    f"{'abcde'[row % 5]},p{row},{20 + row % 50},{'yes' if row % 2 else 'no'}\n" for row in range(400)
)
RANGES = '[columns]\nage = { min = 0, max = 120 }\npatient = "ignore"\nill = { values = ["no", "yes"] }\n'
INIT = "--client hospital --label ill"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(TABLE)
    (tmp_path / "ranges.toml").write_text(RANGES)
    return tmp_path


@pytest.mark.parametrize("against", ["server", "clients", "public"])
@pytest.mark.parametrize("unit", ["example", "client", "person:patient:2", "person:patient:2:2"])
def test_the_file_is_planned_and_certified_for_the_promise(
    unit: str, against: str, folder: Path, discreet: Discreet
) -> None:
    assert discreet(f"init e.toml --table visits.csv {INIT} --unit {unit} --against {against}").code == 0
    promise = tomllib.loads((folder / "e.toml").read_text())["privacy"]
    assert promise["against"] == ("client" if against == "clients" else against)
    person = {"kind": "person", "column": "patient", "at_most": 2} | ({"clients_at_most": 2} if "2:2" in unit else {})
    assert promise["unit"] == (person if ":" in unit else unit)
    plan = discreet("plan e.toml --json")
    assert plan.code == 0, plan.err
    assert plan.json["epsilon"] <= promise["epsilon"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--unit patient", "--unit must be example, client or person:COLUMN:ROWS[:CLIENTS]"),
        ("--unit person:patient:2:x", "--unit must be example, client or person:COLUMN:ROWS[:CLIENTS]"),
        ("--unit person:patient:2:0", "clients_at_most: must be at least 1"),
        ("--unit person:name:3", "has no column 'name'"),
        ("--against everyone", "'everyone' is not one of"),
    ],
)
def test_a_promise_that_there_is_not_is_refused_and_nothing_is_written(
    options: str, problem: str, folder: Path, discreet: Discreet
) -> None:
    ran = discreet(f"init e.toml --table visits.csv {INIT} {options}")
    assert ran.code == 2
    assert problem in ran.err
    assert not (folder / "e.toml").exists()


def test_the_digits_have_one_promise(folder: Path, discreet: Discreet) -> None:
    ran = discreet("init e.toml --unit client")
    assert (ran.code, (folder / "e.toml").exists()) == (2, False)
    assert "need a table" in ran.err
