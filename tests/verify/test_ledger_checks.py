"""A card is compared with the ledger of its run: every edit, cut or extra release shows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet.part import to_plain
from discreet.privacy.events import GaussianNoise, PoissonSampled, PoissonSampledGroup, Repeated
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Release
from discreet.verify.path_check import as_data, check_path, overall

STEP = GaussianNoise(noise_multiplier=10.0)
RELEASE = Release(unit="example", relation="zero_out", view="server", event=STEP)
BUDGET = Budget(unit="example", relation="zero_out", view="server", epsilon=5.0, delta=1e-5)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with three releases, one of them voided, and their card."""
    ledger = Ledger.create(tmp_path / "ledger.jsonl", [BUDGET], mode="plan")
    for round in range(2):
        ledger.commit(ledger.reserve(f"run a round {round}", [RELEASE]), [RELEASE])
    ledger.void(ledger.reserve("run a round 2", [RELEASE]))
    (tmp_path / "run.json").write_text(json.dumps({"id": "a", "ledger": None}))
    write_card(tmp_path, 2)
    return tmp_path


def write_card(run: Path, count: int) -> None:
    state = Ledger.open(run / "ledger.jsonl").summary()
    card = {
        "unit": "example",
        "relation": "zero_out",
        "view": "server",
        "epsilon": 2.0,
        "delta": 1e-5,
        "event": to_plain(Repeated(count=count, event=STEP)),
        "ledger": {"head": state["head"], "length": state["records"]},
        "clients": None,
    }
    (run / "guarantee.json").write_text(json.dumps({"guarantees": [card]}))


def state(run: Path) -> tuple[str, str, str]:
    (checked,) = check_path(run)
    return checked.word, checked.ledger, checked.ledger_reason


def test_an_intact_ledger_with_the_same_steps_agrees(run):
    word, ledger, reason = state(run)
    assert (word, ledger) == ("proved", "agrees")
    assert "counts the same steps" in reason


def test_releases_after_the_card_leave_it_as_it_is(run):
    Ledger.open(run / "ledger.jsonl").reserve("run a round 3", [RELEASE])
    assert state(run)[:2] == ("proved", "agrees")


def test_a_ledger_of_one_run_with_more_steps_than_the_card_refutes_it(run):
    write_card(run, 1)
    word, ledger, reason = state(run)
    assert (word, ledger) == ("refuted", "contradicts")
    assert "counts 1 steps that are not in the card's event" in reason


def test_a_shared_ledger_with_more_steps_than_the_card_can_not_be_told(run):
    write_card(run, 1)
    (run / "run.json").write_text(json.dumps({"id": "a", "ledger": "ledger.jsonl", "folder": str(run)}))
    assert state(run)[:2] == ("unknown", "unknown")


def test_releases_of_other_runs_are_not_counted(run):
    Ledger.open(run / "ledger.jsonl").reserve("run b round 0", [RELEASE])
    write_card(run, 2)
    assert state(run)[:2] == ("proved", "agrees")


@pytest.mark.parametrize("line", range(7))
def test_a_changed_byte_refutes_the_card(run, line):
    path = run / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[line] = lines[line].replace('"at":"2', '"at":"3')
    path.write_text("".join(lines))
    word, ledger, reason = state(run)
    assert (word, ledger) == ("refuted", "contradicts")
    assert f"Line {line + 1} of the ledger does not match its hash." in reason


def test_a_removed_line_refutes_the_card(run):
    path = run / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    assert "Line 3 of the ledger does not follow the one before." in state(run)[2]


def test_a_ledger_whose_end_was_cut_off_refutes_the_card(run):
    path = run / "ledger.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert state(run) == ("refuted", "contradicts", "The card counts 7 lines, and the ledger has 6.")


def test_another_ledger_of_the_same_length_refutes_the_card(run):
    data = json.loads((run / "guarantee.json").read_text())
    data["guarantees"][0]["ledger"]["head"] = "f" * 64
    (run / "guarantee.json").write_text(json.dumps(data))
    assert "Line 7 of the ledger has another hash than the card names." in state(run)[2]


def test_an_unfinished_last_line_is_left_out(run):
    with (run / "ledger.jsonl").open("a") as file:
        file.write('{"seq":7,"prev":"')
    assert state(run)[:2] == ("proved", "agrees")


def test_a_missing_ledger_can_not_be_told(run):
    (run / "ledger.jsonl").unlink()
    assert state(run)[:2] == ("unknown", "unknown")


def change_card(run: Path, **changes: Any) -> None:
    data = json.loads((run / "guarantee.json").read_text())
    data["guarantees"][0] |= changes
    (run / "guarantee.json").write_text(json.dumps(data))


def test_what_a_person_with_several_rows_costs_follows_from_releases_of_examples(run):
    person = {"kind": "person", "column": "patient_id", "at_most": 5}
    release = GaussianNoise(noise_multiplier=STEP.noise_multiplier / 5)
    change_card(run, unit=person, event=to_plain(Repeated(count=2, event=release)), epsilon=9.0)
    assert state(run)[:2] == ("proved", "agrees")
    change_card(run, unit=person | {"at_most": 6})
    assert state(run)[:2] == ("refuted", "contradicts")


def test_rows_of_a_person_under_sampling_are_compared_as_a_group(tmp_path):
    step = PoissonSampled(sampling_rate=0.1, event=GaussianNoise(noise_multiplier=10.0))
    release = Release(unit="example", relation="zero_out", view="server", event=step, separate=True)
    ledger = Ledger.create(tmp_path / "ledger.jsonl", [BUDGET], mode="plan")
    ledger.commit(ledger.reserve("run a round 0", [release]), [release])
    (tmp_path / "run.json").write_text(json.dumps({"id": "a", "ledger": None}))
    write_card(tmp_path, 1)
    group = PoissonSampledGroup(sampling_rate=0.1, group_size=3, event=step.event)
    person = {"kind": "person", "column": "patient_id", "at_most": 3, "clients_at_most": 2}
    change_card(tmp_path, unit=person, event=to_plain(Repeated(count=2, event=group)))
    assert state(tmp_path)[:2] == ("proved", "agrees")
    change_card(tmp_path, event=to_plain(group))
    assert state(tmp_path)[:2] == ("refuted", "contradicts")


def test_what_the_server_saw_is_counted_for_the_public(run):
    change_card(run, view="public")
    assert state(run)[:2] == ("proved", "agrees")
    change_card(run, event=to_plain(STEP), epsilon=1.0)
    assert state(run)[:2] == ("refuted", "contradicts")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"unit": "client"}, "no release from which anything follows for the card's unit and view"),
        ({"view": "client"}, "no release from which anything follows for the card's unit and view"),
        ({"relation": "add_or_remove"}, "about one example under zero_out, from which the card does not follow"),
    ],
)
def test_a_card_that_does_not_follow_from_the_ledger_is_not_proved(run, changes, reason):
    change_card(run, **changes)
    word, ledger, told = state(run)
    assert (word, ledger) == ("unknown", "unknown")
    assert reason in told


def test_each_client_is_compared_where_releases_name_clients(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.jsonl", [BUDGET], mode="plan")
    for round, clients in enumerate([(0,), (1,), (0, 2)]):
        release = replace(RELEASE, clients=clients)
        ledger.commit(ledger.reserve(f"run a round {round}", [release]), [release])
    (tmp_path / "run.json").write_text(json.dumps({"id": "a", "ledger": None}))
    write_card(tmp_path, 2)
    assert state(tmp_path)[:2] == ("proved", "agrees")
    write_card(tmp_path, 1)
    assert state(tmp_path)[:2] == ("refuted", "contradicts")
    change_card(tmp_path, clients=[1, 2])
    assert state(tmp_path)[:2] == ("proved", "agrees")


def test_the_worst_card_is_the_answer(run):
    data = json.loads((run / "guarantee.json").read_text())
    data["guarantees"].append({**data["guarantees"][0], "epsilon": 0.1})
    (run / "guarantee.json").write_text(json.dumps(data))
    checked = check_path(run)
    assert overall(checked) == "refuted"
    answer = as_data(checked)
    assert (answer["verdict"], answer["epsilon"]) == ("refuted", 0.1)
    assert [card["verdict"] for card in answer["cards"]] == ["proved", "refuted"]
