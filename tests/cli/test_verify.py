"""`discreet verify` prints a verdict, an enclosure and the pairs, and its exit code is the verdict."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Discreet

ACCOUNT = "account gaussian --noise-multiplier 1 --sampling-rate 0.1 --steps 100 --delta 1e-5 --card --json"


@pytest.fixture
def card(tmp_path: Path, discreet: Discreet) -> Path:
    path = tmp_path / "card.json"
    path.write_text(discreet(ACCOUNT).out)
    return path


def change_epsilon(path: Path, factor: float) -> None:
    data = json.loads(path.read_text())
    data["epsilon"] *= factor
    data["guarantee"]["epsilon"] = data["epsilon"]
    path.write_text(json.dumps(data))


def change_card(path: Path, **fields: object) -> None:
    """Leave only the card in the file, with these fields changed."""
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data.get("guarantee", data) | fields))


def test_a_card_of_the_account_command_is_proved(card, discreet):
    ran = discreet("verify --json", card)
    answer = ran.json
    low, high = answer["delta_enclosure"]
    assert (ran.code, answer["verdict"], answer["delta"]) == (0, "proved", 1e-5)
    assert 0.9e-5 < low < high <= 1e-5
    assert answer["pairs"] == [
        "100 × Gaussian, Poisson-sampled: (1−q)Q + qP against Q and backwards (Zhu, Dong & Wang 2022, Thm 11)"
    ]
    assert answer["ledger"]["state"] == "none"
    assert answer["reason"].startswith("δ(ε) is at most 9.9")
    assert answer["reason"].endswith("e-6, and the card says 1e-5.")


def test_a_lower_epsilon_is_refuted_with_exit_code_4(card, discreet):
    change_epsilon(card, 0.99)
    ran = discreet("verify", card)
    assert ran.code == 4
    assert ran.out.startswith("Refuted: ε = 6.9")
    assert "Direction" in ran.out


def test_an_unknown_event_has_exit_code_5(card, discreet):
    change_card(card, event={"kind": "magic"})
    ran = discreet("verify --json", card)
    assert (ran.code, ran.json["verdict"]) == (5, "unknown")
    assert "magic" in ran.json["reason"]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"epsilon": 1}', '{"epsilon": 1, "delta": 2, "relation": "", "event": 1}']
)
def test_a_file_without_a_card_is_wrong_input(content, tmp_path, discreet):
    path = tmp_path / "card.json"
    path.write_text(content)
    ran = discreet("verify --json", path)
    assert (ran.code, ran.out) == (2, "")
    assert json.loads(ran.err)["error"]["kind"] == "InvalidInput"


@pytest.mark.parametrize("name", ["epsilon", "delta", "relation", "event"])
def test_a_file_that_states_two_different_promises_is_refused(name, card, discreet):
    data = json.loads(card.read_text())
    data[name] = {"epsilon": 1.5, "delta": 1e-9, "relation": "replace", "event": {"kind": "gaussian"}}[name]
    card.write_text(json.dumps(data))
    ran = discreet("verify", card)
    assert (ran.code, ran.out) == (2, "")
    assert f"must state one {name}" in ran.err.replace("\n", " ")


def test_an_object_that_states_a_name_twice_is_refused(card, discreet):
    change_card(card)
    card.write_text(card.read_text().replace('"epsilon": 7', '"epsilon": 1.5, "epsilon": 7', 1))
    ran = discreet("verify", card)
    assert (ran.code, ran.out) == (2, "")
    assert "must have each name once" in ran.err.replace("\n", " ")


def test_an_infinite_epsilon_is_said_to_promise_nothing(card, discreet):
    change_card(card, epsilon="inf")
    ran = discreet("verify", card)
    assert ran.code == 5
    assert ran.out.startswith("Unknown: ε = inf")
    assert "An infinite ε promises nothing" in ran.out
    assert "between" not in ran.out


PERSON = {"kind": "person", "column": "patient_id", "at_most": 5}


@pytest.mark.parametrize(
    "fields",
    [
        {"unit": None},
        {"unit": "person"},
        {"unit": {"kind": "person"}},
        {"unit": PERSON | {"at_most": True}},
        {"unit": PERSON | {"clients_at_most": 0}},
        {"view": 7},
        {"view": None},
    ],
)
def test_a_card_of_no_unit_or_view_is_refused(fields, card, discreet):
    change_card(card, **fields)
    ran = discreet("verify", card)
    assert (ran.code, ran.out) == (2, "")
    assert "must be" in ran.err


@pytest.mark.parametrize(("more", "words"), [({}, ","), ({"clients_at_most": 2}, " at each of at most 2 clients,")])
def test_a_person_is_printed_in_words(more, words, card, discreet):
    change_card(card, unit=PERSON | more)
    out = " ".join(discreet("verify", card).out.split())
    assert f"unit person (patient_id), at most 5 rows{words} view server" in out


def test_epsilon_is_printed_as_cards_print_it_and_a_refuted_one_is_not_raised(card, discreet):
    gaussian = {"kind": "gaussian", "noise_multiplier": 4.0}
    change_card(card, epsilon=1.999991, event=gaussian)
    assert discreet("verify", card).out.startswith("Proved: ε = 2 at δ = 1e-5\n")
    change_card(card, epsilon=1.999991, event=gaussian | {"noise_multiplier": 1.0})
    assert discreet("verify", card).out.startswith("Refuted: ε = 1.99999 at δ = 1e-5\n")


def test_a_run_without_privacy_is_said_to_promise_none(tmp_path, discreet):
    (tmp_path / "guarantee.json").write_text(json.dumps({"rounds": 3, "promise": None, "guarantees": []}))
    ran = discreet("verify", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "promises no privacy" in ran.err.replace("\n", " ")


def test_the_checker_runs_alone_and_loads_no_accountant(card):
    done = subprocess.run([sys.executable, "-m", "discreet.verify", str(card)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "proved"
    imported = "import sys, discreet.verify.path_check; print(*sys.modules)"
    listed = subprocess.run([sys.executable, "-c", imported], capture_output=True, text=True).stdout.split()
    assert "discreet.verify.card_check" in listed
    assert not [name for name in listed if name.startswith("discreet.privacy") or name in ("torch", "pydantic")]


def test_without_flint_the_extra_is_named(card):
    hide = "import sys; sys.modules['flint'] = None; from discreet.cli.main import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", hide, "verify", str(card)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'discreet[verify]'" in done.stderr


@pytest.mark.parametrize("seeded", [True, False])
def test_a_seeded_run_is_said_to_protect_nobody(card, discreet, seeded):
    whole = json.loads(card.read_text())
    card.write_text(json.dumps({"seeded": seeded, "guarantees": [whole["guarantee"]]}))
    assert ("This run protects nobody" in discreet("verify", card).out) is seeded
    assert discreet("verify --json", card).json["seeded"] is seeded


def test_a_run_that_has_not_finished_has_no_card_yet(tmp_path, discreet):
    (tmp_path / "run.json").write_text("{}")
    ran = discreet("verify", tmp_path)
    assert ran.code == 2
    assert "has not finished, so it has no card yet. Resume it first." in " ".join(ran.err.split())
