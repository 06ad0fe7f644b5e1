"""A card is compared with the ledger of its run: every edit, cut or extra release shows."""

import json
from pathlib import Path

import pytest

from discreet.part import to_plain
from discreet.privacy.events import GaussianNoise, Repeated
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


def test_a_ledger_with_more_steps_than_the_card_can_not_be_told(run):
    write_card(run, 1)
    word, ledger, reason = state(run)
    assert (word, ledger) == ("unknown", "unknown")
    assert "counts 1 steps that are not in the card's event" in reason


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


def test_a_person_is_not_compared_with_releases_of_examples_and_the_reason_says_so(run):
    data = json.loads((run / "guarantee.json").read_text())
    data["guarantees"][0]["unit"] = {"kind": "person", "column": "patient_id", "at_most": 5}
    (run / "guarantee.json").write_text(json.dumps(data))
    word, ledger, reason = state(run)
    assert (word, ledger) == ("proved", "agrees")
    assert reason.endswith(
        "not compared: the ledger lists releases of single examples, from which the price of a person follows."
    )


def test_the_worst_card_is_the_answer(run):
    data = json.loads((run / "guarantee.json").read_text())
    data["guarantees"].append({**data["guarantees"][0], "epsilon": 0.1})
    (run / "guarantee.json").write_text(json.dumps(data))
    checked = check_path(run)
    assert overall(checked) == "refuted"
    answer = as_data(checked)
    assert (answer["verdict"], answer["epsilon"]) == ("refuted", 0.1)
    assert [card["verdict"] for card in answer["cards"]] == ["proved", "refuted"]
