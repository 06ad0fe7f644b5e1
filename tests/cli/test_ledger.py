"""`discreet ledger` creates a ledger, shows what is spent, and detects changes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.privacy.events import GaussianNoise
from discreet.privacy.ledger import Ledger
from discreet.privacy.release import Release
from tests.cli.conftest import Discreet

RELEASE = Release(unit="example", relation="add_or_remove", view="server", event=GaussianNoise(noise_multiplier=10.0))


@pytest.fixture
def path(tmp_path: Path, discreet: Discreet) -> Path:
    made = tmp_path / "ledger.jsonl"
    assert discreet("ledger create --epsilon 2 --delta 1e-5", made).code == 0
    return made


def test_a_new_ledger_holds_its_budget_and_nothing_else(path: Path, discreet: Discreet):
    summary = discreet("ledger show --json", path).json
    (budget,) = summary["budgets"]
    assert (budget["epsilon"], budget["delta"], budget["spent"]) == (2, 1e-5, 0)
    assert (budget["unit"], budget["view"], budget["relation"]) == ("example", "server", "zero_out")
    assert summary["mode"] == "filter"


def test_clients_is_another_word_for_the_view_client(tmp_path: Path, discreet: Discreet):
    made = discreet(f"ledger create {tmp_path / 'l.jsonl'} --epsilon 1 --delta 1e-5 --view clients")
    assert made.code == 0
    assert Ledger.open(tmp_path / "l.jsonl").budgets[0].view == "client"
    account = "account gaussian --noise-multiplier 4 --delta 1e-5 --view"
    assert discreet(f"{account} clients").out == discreet(f"{account} client").out


def test_spending_shows(path: Path, discreet: Discreet):
    ledger = Ledger.open(path)
    ledger.commit(ledger.reserve("a/1", [RELEASE]), [RELEASE])
    ledger.reserve("a/2", [RELEASE])
    summary = discreet("ledger show --json", path).json
    assert 0 < summary["budgets"][0]["spent"] < 2
    assert summary["releases"] == {"committed": 1, "reserved": 1, "voided": 0}
    text = discreet("ledger show", path).out
    assert "Releases: 1 committed, 1 reserved (counted as spent), 0 voided." in " ".join(text.split())
    assert "Outstanding: a/2" in text


def test_a_whole_chain_is_verified(path: Path, discreet: Discreet):
    state = discreet("ledger verify --json", path).json
    assert state["intact"] is True
    assert state["head"] in discreet("ledger verify", path).out


def test_a_ledger_that_has_grown_still_has_the_head_of_a_card(path: Path, discreet: Discreet):
    before = discreet("ledger verify --json", path).json
    ledger = Ledger.open(path)
    ledger.commit(ledger.reserve("a/1", [RELEASE]), [RELEASE])
    assert discreet(f"ledger verify --head {before['head']} --records {before['records']}", path).code == 0
    assert discreet(f"ledger verify --head {before['head']}", path).code == 0


def test_a_cut_end_or_an_older_copy_is_found_by_the_head_and_records_of_a_card(path: Path, discreet: Discreet):
    older = path.read_bytes()
    ledger = Ledger.open(path)
    ledger.commit(ledger.reserve("a/1", [RELEASE]), [RELEASE])
    card = discreet("ledger verify --json", path).json
    path.write_bytes(older)
    for options in (f"--head {card['head']}", f"--records {card['records']}"):
        ran = discreet(f"ledger verify --json {options}", path)
        assert (ran.code, json.loads(ran.err)["error"]["kind"]) == (1, "LedgerDamaged")
    ledger = Ledger.open(path)
    ledger.commit(ledger.reserve("a/other", [RELEASE]), [RELEASE])  # as long as before, with another end
    assert discreet(f"ledger verify --records {card['records']}", path).code == 0
    assert discreet(f"ledger verify --head {card['head']} --records {card['records']}", path).code == 1
    assert discreet("ledger verify --head nonsense", path).code == 2


def test_the_promise_of_a_filter_is_its_budget(path: Path, discreet: Discreet):
    assert "The promise is the budget." in discreet("ledger show", path).out


def test_an_edit_is_found(path: Path, discreet: Discreet):
    path.write_text(path.read_text().replace('"epsilon":2', '"epsilon":9'))
    for command in ("show", "verify"):
        ran = discreet(f"ledger {command} --json", path)
        assert (ran.code, ran.out) == (1, "")
        assert json.loads(ran.err)["error"]["kind"] == "LedgerDamaged"


def test_a_missing_ledger_is_wrong_input(tmp_path: Path, discreet: Discreet):
    ran = discreet("ledger show", tmp_path / "none.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert "There is no ledger at" in ran.err


def test_an_existing_file_is_never_overwritten(path: Path, discreet: Discreet):
    before = path.read_bytes()
    assert discreet("ledger create --epsilon 9 --delta 1e-5", path).code == 2
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "wrong", ["--epsilon 1", "--delta 1e-5", "--epsilon -1 --delta 1e-5", "--epsilon 1 --delta 2", "--unit person:x:0"]
)
def test_a_budget_that_is_none_is_refused(wrong: str, tmp_path: Path, discreet: Discreet):
    ran = discreet(f"ledger create {wrong}", tmp_path / "ledger.jsonl")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_person_is_named_by_a_column(tmp_path: Path, discreet: Discreet):
    line = "ledger create --epsilon 2 --delta 1e-5 --unit person:patient:20 --view public --mode plan"
    summary = discreet(f"{line} --json", tmp_path / "ledger.jsonl").json
    assert summary["budgets"][0]["unit"] == {"kind": "person", "column": "patient", "at_most": 20}
    assert "person (patient)" in discreet("ledger show", tmp_path / "ledger.jsonl").out


def test_a_person_may_be_in_several_clients(tmp_path: Path, discreet: Discreet):
    line = "ledger create --epsilon 2 --delta 1e-5 --unit person:patient:20:3"
    summary = discreet(f"{line} --json", tmp_path / "ledger.jsonl").json
    unit = {"kind": "person", "column": "patient", "at_most": 20, "clients_at_most": 3}
    assert summary["budgets"][0]["unit"] == unit
    assert discreet("ledger show --json", tmp_path / "ledger.jsonl").json["budgets"][0]["unit"] == unit


@pytest.mark.parametrize(
    ("options", "relation"),
    [
        ("", "zero_out"),
        ("--unit example", "zero_out"),
        ("--unit person:patient:20", "zero_out"),
        ("--unit client", "add_or_remove"),
        ("--unit example --relation add-or-remove", "add_or_remove"),
        ("--unit client --relation zero-out", "zero_out"),
        ("--relation replace", "replace"),
    ],
)
def test_examples_and_persons_are_promised_what_sizes_that_are_public_allow(
    options: str, relation: str, tmp_path: Path, discreet: Discreet
):
    ran = discreet(f"ledger create --epsilon 2 --delta 1e-5 {options} --json", tmp_path / "ledger.jsonl")
    assert ran.json["budgets"][0]["relation"] == relation


def test_an_older_ledger_is_restated_with_what_it_spent(tmp_path: Path, discreet: Discreet):
    path = tmp_path / "ledger.jsonl"
    discreet("ledger create --epsilon 2 --delta 1e-5 --relation add-or-remove", path)
    Ledger.open(path).reserve("a/1", [RELEASE])
    before = discreet("ledger show --json", path).json["budgets"][0]
    assert discreet("ledger restate --json", path).json["budgets"] == [before | {"relation": "zero_out"}]
    assert "zero-out" in discreet("ledger show", path).out
    again = discreet("ledger restate", path)
    assert (again.code, again.out) == (2, "")
    assert "there is nothing to restate. See what it promises: discreet ledger show" in again.err


def test_each_client_has_a_line_of_its_own(path: Path, discreet: Discreet):
    ledger = Ledger.open(path)
    ledger.reserve("all", [replace(RELEASE, clients=(0, 1, 2))])
    ledger.reserve("one", [replace(RELEASE, clients=(1,))])
    own = discreet("ledger show --clients --json", path).json["budgets"][0]["by_client"]
    assert [each["clients"] for each in own] == [[1], [0, 2]]
    assert own[0]["spent"] > own[1]["spent"] > 0
    assert own[0]["spent"] + own[0]["remaining"] == pytest.approx(2)
    text = discreet("ledger show --clients", path).out
    assert "client 1 " in text
    assert "clients 0, 2" in text
    assert "by_client" not in discreet("ledger show --json", path).json["budgets"][0]
