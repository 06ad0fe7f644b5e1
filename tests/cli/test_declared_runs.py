"""What commands print of a run whose noise a user's own code only declares: never that it is certified."""

import json
from pathlib import Path

import pytest

from discreet.experiment.run_directory.run_data import read_run
from discreet.report.verdict import judge
from tests.cli.conftest import Discreet
from tests.test_user_part import LOUD, MINE

CERTIFIED = LOUD.replace("mine.py:Loud", "gaussian")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "declared.toml").write_text(LOUD)
    (tmp_path / "certified.toml").write_text(CERTIFIED)
    return tmp_path


def test_a_certified_run_cannot_join_the_ledger_of_a_declared_one(discreet: Discreet, folder: Path) -> None:
    assert discreet("run --trust declared.toml --out declared --set privacy.epsilon=100").code == 0
    ledger = folder / "declared" / "ledger.jsonl"
    before = ledger.read_bytes()
    refused = discreet("run certified.toml --out certified --set privacy.epsilon=1 --ledger", ledger)
    assert refused.code == 2
    assert "only declares, so nothing can be certified from it, and no other run can join it." in words(refused.err)
    assert not (folder / "certified").exists()
    assert ledger.read_bytes() == before
    assert "Not certified: what is spent is only declared, by mine.py:Loud" in words(
        discreet("ledger show", ledger).out
    )
    (own,) = discreet("ledger show --json", ledger).json["on_word_of"]
    assert own.startswith("mine.py:Loud (sha256 ")


def test_the_ledger_of_a_certified_run_is_written_as_before(discreet: Discreet, folder: Path) -> None:
    assert discreet("run certified.toml --out certified").code == 0
    ledger = folder / "certified" / "ledger.jsonl"
    assert "on_word_of" not in ledger.read_text()
    assert "on_word_of" not in discreet("ledger show --json", ledger).json
    assert "Not certified" not in discreet("ledger show", ledger).out


def test_compare_tells_a_declared_epsilon_from_a_certified_one(discreet: Discreet, folder: Path) -> None:
    both = discreet("compare --trust declared.toml certified.toml --seeds 1 --out both --json").json
    declared, certified = both["rows"]
    assert declared["on_word_of"][0].startswith("mine.py:Loud (sha256 ")
    assert "on_word_of" not in certified
    assert "each ε, except one that is only declared, is what the same run without a seed would certify" in both["note"]
    assert "except one that is only declared" in (folder / "both" / "compare.html").read_text()
    alone = discreet("compare certified.toml --seeds 1 --out alone --json").json
    assert "each ε is what the same run without a seed would certify" in alone["note"]


def test_a_plan_says_whether_its_epsilon_is_certified(discreet: Discreet) -> None:
    assert discreet("plan --trust declared.toml --json").json["certified"] is False
    assert discreet("plan certified.toml --json").json["certified"] is True


def test_the_public_report_of_a_declared_run_is_not_for_anyone(discreet: Discreet) -> None:
    discreet("run --trust declared.toml --out declared")
    discreet("run certified.toml --out certified")
    declared = words(discreet("report declared --public").out)
    assert "The guarantee itself is not certified" in declared
    assert "You may give it to anyone" not in declared
    assert "You may give it to anyone" in words(discreet("report certified --public").out)


def test_a_card_without_the_part_on_whose_word_it_is_gets_a_bad_verdict(discreet: Discreet, folder: Path) -> None:
    discreet("run --trust declared.toml --out declared")
    path = folder / "declared" / "guarantee.json"
    outcome = json.loads(path.read_text())
    for card in outcome["guarantees"]:
        assert card.pop("on_word_of")
    path.write_text(json.dumps(outcome))
    verdict = judge(read_run(folder / "declared"))
    assert verdict.mood == "bad"
    assert "only declared, by mine.py:Loud: guarantee.json was changed." in verdict.sentence


def words(text: str) -> str:
    return " ".join(text.split())
