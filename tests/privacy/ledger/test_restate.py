"""A ledger of an older version promised what no release of examples satisfies; restating it keeps what it spent."""

import json
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import BudgetRefused, InvalidInput, Unsupported
from discreet.privacy.ledger import Ledger, Mode
from discreet.privacy.release import Person

from .helpers import budget, gaussian_epsilon, lines, release, spend_all, spent_epsilon

PATIENT = Person(column="patient", at_most=3)


def older(path: Path, mode: Mode = "plan", rounds: int = 4, **fields: Any) -> Ledger:
    """Return a ledger as an older version wrote it: budget and releases under add-or-remove."""
    ledger = Ledger.create(path, [budget(4.0, **fields)], mode)
    for number in range(rounds):
        ledger.commit(ledger.reserve(f"old/{number}", [release()]), [release()])
    return ledger


@pytest.mark.parametrize("unit", ["example", PATIENT])
def test_an_older_ledger_refuses_a_release_of_examples_and_says_how_to_go_on(tmp_path: Path, unit: Any):
    ledger = older(tmp_path / "ledger.jsonl", unit=unit)
    before = ledger.path.read_bytes()
    with pytest.raises(Unsupported, match="is public and divides its noise, so a removed one shows") as refused:
        ledger.reserve("new", [release(relation="zero_out")])
    assert "with what it has spent: discreet ledger restate PATH" in refused.value.fix
    assert "create" not in str(refused.value)  # a second ledger would be a second budget for the same data
    assert ledger.path.read_bytes() == before


@pytest.mark.parametrize("mode", ["plan", "filter"])
@pytest.mark.parametrize("unit", ["example", PATIENT])
def test_what_was_spent_stays_spent_to_the_last_digit(tmp_path: Path, mode: Mode, unit: Any):
    ledger = older(tmp_path / "ledger.jsonl", mode, unit=unit)
    before = ledger.summary()
    ledger.restate()
    after = ledger.summary()
    assert spent_epsilon(after) == spent_epsilon(before) > 0
    assert after["releases"] == before["releases"]
    assert after["budgets"] == [before["budgets"][0] | {"relation": "zero_out"}]
    assert Ledger.open(ledger.path).summary() == after


def test_old_releases_and_new_ones_add_up(tmp_path: Path):
    """Four releases at z = 10 under the old promise and five under the new: ε of nine, μ = 3/10."""
    ledger = older(tmp_path / "ledger.jsonl")
    ledger.restate()
    for number in range(5):
        ledger.reserve(f"new/{number}", [release(relation="zero_out")])
    assert spent_epsilon(ledger.summary()) == pytest.approx(gaussian_epsilon(0.3), abs=1e-3)


def test_a_restated_ledger_affords_what_is_left_and_no_more(tmp_path: Path):
    blank = release(relation="zero_out")
    fresh, _ = spend_all(Ledger.create(tmp_path / "fresh.jsonl", [budget(4.0, relation="zero_out")]), blank)
    ledger = older(tmp_path / "ledger.jsonl", rounds=7)
    ledger.restate()
    left, refusal = spend_all(ledger, blank)
    assert left == fresh - 7
    assert isinstance(refusal, BudgetRefused)
    assert "relation zero_out" in str(refusal)


def test_an_older_version_s_lines_are_counted_as_they_were(tmp_path: Path):
    """An older reservation may be committed afterwards, under the relation of the reservation."""
    ledger = older(tmp_path / "ledger.jsonl")
    ticket = ledger.reserve("open", [release()])
    ledger.restate()
    ledger.commit(ticket, [release(20.0)])
    assert ledger.summary()["releases"] == {"committed": 5, "reserved": 0, "voided": 0}
    assert [line["type"] for line in lines(ledger.path)][-2:] == ["restate", "commit"]


@pytest.mark.parametrize("restated", [False, True])
def test_a_known_key_with_another_relation_is_refused(restated: bool, tmp_path: Path):
    """A blank in an example's place is another release than its removal, under any key."""
    ledger = older(tmp_path / "ledger.jsonl")
    ticket = ledger.reserve("run/1", [release()])
    ledger.commit(ticket, [release()])
    if restated:
        ledger.restate()
    before = ledger.path.read_bytes()
    for relation in ("zero_out", "replace"):
        with pytest.raises(InvalidInput, match="already used for other releases"):
            ledger.reserve("run/1", [release(relation=relation)])
        with pytest.raises(InvalidInput, match="already committed, as other releases"):
            ledger.commit(ticket, [release(relation=relation)])
    assert ledger.path.read_bytes() == before


def test_of_a_client_both_relations_are_two_releases(tmp_path: Path):
    fields: dict[str, Any] = {"unit": "client", "view": "public"}
    ledger = Ledger.create(tmp_path / "ledger.jsonl", [budget(relation="zero_out", **fields)])
    ledger.reserve("run/1", [release(**fields)])
    with pytest.raises(InvalidInput, match="already used for other releases"):
        ledger.reserve("run/1", [release(relation="zero_out", **fields)])


def test_another_process_that_has_the_ledger_open_sees_it(tmp_path: Path):
    ledger = older(tmp_path / "ledger.jsonl")
    other = Ledger.open(ledger.path)
    ledger.restate()
    assert other.budgets == ledger.budgets == (budget(4.0, relation="zero_out"),)
    other.reserve("new", [release(relation="zero_out")])


def test_a_budget_for_clients_stays_as_it_is(tmp_path: Path):
    both = [budget(2.0), budget(3.0, unit="client", view="public")]
    ledger = Ledger.create(tmp_path / "ledger.jsonl", both)
    ledger.restate()
    assert ledger.budgets == (budget(2.0, relation="zero_out"), both[1])


@pytest.mark.parametrize("kept", [{"relation": "zero_out"}, {"relation": "replace"}, {"unit": "client"}])
def test_a_ledger_that_promises_no_such_thing_has_nothing_to_restate(tmp_path: Path, kept: dict[str, Any]):
    ledger = Ledger.create(tmp_path / "ledger.jsonl", [budget(2.0, **kept)])
    before = ledger.path.read_bytes()
    with pytest.raises(InvalidInput, match="nothing to restate"):
        ledger.restate()
    assert ledger.path.read_bytes() == before


def test_a_promise_can_only_be_restated_as_the_smaller_one(tmp_path: Path):
    ledger = older(tmp_path / "ledger.jsonl")
    ledger.restate()
    line = json.loads(ledger.path.read_bytes().splitlines()[-1])
    assert (line["type"], line["relation"]) == ("restate", "zero_out")
    with pytest.raises(InvalidInput, match="nothing to restate"):
        ledger.restate()
