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


@pytest.mark.parametrize("unit", ["example", "person:patient:2", "client"])
def test_a_client_that_knows_its_share_of_the_noise_has_a_larger_epsilon_than_the_server(
    unit: str, folder: Path, discreet: Discreet
) -> None:
    discreet(f"init e.toml --table visits.csv {INIT} --unit {unit} --against server")
    starter = (folder / "e.toml").read_text()
    assert "another client also knows its own noise: see --against clients" in starter
    assert "everyone who sees less" not in starter
    cards = discreet("plan e.toml --json").json["guarantees"]
    by_view = {card["view"]: card["epsilon"] for card in cards if card["unit"] == cards[0]["unit"]}
    assert by_view["client"] > by_view["server"]


@pytest.mark.parametrize(("delta", "is_large"), [(0.5, True), (1e-4, False)])
def test_a_large_delta_is_warned_of_before_training_on_the_card_and_in_the_verdict(
    delta: float, is_large: bool, folder: Path, discreet: Discreet
) -> None:
    discreet(f"init e.toml --table visits.csv {INIT} --unit example --against server")
    ran = discreet(f"run e.toml --out first --set rounds=1 --set privacy.delta={delta}")
    assert ran.code == 0, ran.err
    assert ("Warning: delta = 0.5 is no less than" in " ".join(ran.err.split())) == is_large
    assert ("One unit in full: δ is no less than" in ran.out) == is_large
    brief = discreet("report first --brief --json").json
    assert brief["mood"] == ("bad" if is_large else "good")
    assert ("would keep this promise" in brief["verdict"][0]) == is_large


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--unit patient", "--unit must be example, client or person:COLUMN:ROWS[:CLIENTS]"),
        ("--unit person:patient:2:x", "--unit must be example, client or person:COLUMN:ROWS[:CLIENTS]"),
        ("--unit person:patient:2:0", "CLIENTS in --unit person:COLUMN:ROWS[:CLIENTS] must be at least 1, and got 0"),
        ("--unit person:patient:0", "ROWS in --unit person:COLUMN:ROWS[:CLIENTS] must be at least 1, and got 0"),
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


def test_two_clients_add_their_own_noise_since_they_cant_hide_in_a_sum(folder: Path, discreet: Discreet) -> None:
    (folder / "two.csv").write_text(TABLE.replace("\nc,", "\na,").replace("\nd,", "\na,").replace("\ne,", "\nb,"))
    assert discreet(f"init e.toml --table two.csv {INIT}").code == 0
    assert tomllib.loads((folder / "e.toml").read_text())["algorithm"]["recipe"] == "pfl"
    assert discreet("plan e.toml --json").json["warnings"] == []


def test_columns_that_the_ranges_ignore_dont_count(folder: Path, discreet: Discreet) -> None:
    assert discreet(f"init e.toml --table visits.csv {INIT}").code == 0
    assert "# for 1 column, 400 rows and 5 clients" in (folder / "e.toml").read_text()
    assert discreet(f"init f.toml --table visits.csv {INIT} --ranges gone.toml").code == 0
    assert "# for 2 columns, 400 rows and 5 clients" in (folder / "f.toml").read_text()


def test_ranges_that_are_there_are_checked_and_not_written_again(folder: Path, discreet: Discreet) -> None:
    steps = discreet(f"init e.toml --table visits.csv {INIT} --json").json["next"]
    assert steps[0] == "discreet data check visits.csv --client hospital --label ill --ranges ranges.toml"
    steps = discreet(f"init f.toml --table visits.csv {INIT} --ranges gone.toml --json").json["next"]
    assert steps[0].endswith("--write-ranges gone.toml")


def test_ranges_that_were_taken_from_the_data_are_remarked_on(folder: Path, discreet: Discreet) -> None:
    public = discreet(f"init e.toml --table visits.csv {INIT}").out
    assert "taken from the data" not in public
    ranges = (folder / "ranges.toml").read_text()
    (folder / "ranges.toml").write_text(f"taken_from_data = true\n{ranges}")
    ran = " ".join(discreet(f"init f.toml --table visits.csv {INIT}").out.split())
    assert "The ranges in ranges.toml were taken from the data: training refuses them" in ran
    assert "delete its line taken_from_data" in ran


def test_a_table_without_rows_has_no_settings(folder: Path, discreet: Discreet) -> None:
    (folder / "empty.csv").write_text("hospital,age,ill\n")
    ran = discreet(f"init e.toml --table empty.csv {INIT}")
    assert (ran.code, (folder / "e.toml").exists()) == (2, False)
    assert "has no rows" in ran.err
