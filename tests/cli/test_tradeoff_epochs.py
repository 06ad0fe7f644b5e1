"""`discreet tradeoff epochs`: rows, one object, a picture, and refusals."""

from pathlib import Path

import pytest

from tests.cli.conftest import Discreet


def test_without_options_it_answers_for_the_papers_mnist(discreet: Discreet):
    ran = discreet("tradeoff epochs")
    assert ran.code == 0
    assert "Noise multiplier 1.531 at every E" in ran.out
    assert "0.7127" in ran.out  # of one round, rounded up
    assert "* 0.6552" in ran.out  # by ε/√R, which is too small
    assert "linear in E by construction" in " ".join(ran.out.split())
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_object_holds_every_split_with_its_flags(discreet: Discreet):
    found = discreet("tradeoff epochs --epochs 12 --epsilon 1.2 --json").json
    assert [(each["epochs"], each["rounds"]) for each in found["splits"]] == [
        (1, 12),
        (2, 6),
        (3, 4),
        (4, 3),
        (6, 2),
        (12, 1),
    ]
    whole = found["splits"][-1]
    for each in found["splits"]:
        assert each["theorem2"]["all_rounds"] == pytest.approx(whole["theorem2"]["printed"])
        cost = each["round_epsilon"]
        assert cost["valid"] is (cost["asymptotic"] >= cost["exact"])
        assert bool(cost["reason"]) is not cost["valid"]
    assert whole["noise"]["mean"] == pytest.approx(found["whole_run"]["mean_noise"])
    assert found["claim"]["proven"] is False
    assert (found["unit"], found["relation"], found["epsilon"]) == ("example", "zero_out", 1.2)


def test_it_is_drawn(discreet: Discreet, tmp_path: Path):
    ran = discreet("tradeoff epochs --picture", tmp_path / "epochs.svg")
    assert (ran.code, ran.err) == (0, "")
    assert "Theorem 2" in (tmp_path / "epochs.svg").read_text()


@pytest.mark.parametrize("wrong", ["--epsilon 0", "--epochs 1.5", "--delta 1", "--picture epochs.doc", "--clients 0"])
def test_what_it_cannot_mean_is_refused_in_one_sentence(wrong: str, discreet: Discreet):
    ran = discreet(f"tradeoff epochs {wrong}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
