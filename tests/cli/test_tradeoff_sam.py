"""`discreet tradeoff sam`: terms, one object, a picture, and refusals."""

from pathlib import Path

import pytest

from tests.cli.conftest import Discreet


def test_without_options_it_answers_for_the_papers_cifar_10(discreet: Discreet):
    ran = discreet("tradeoff sam")
    assert ran.code == 0
    said = " ".join(ran.out.split())
    assert "Certified for a whole client: ε = 9.373 at δ = 0.002" in said
    assert "C/m = 0.004" in said
    assert "Theorem 3 is an O(·)" in said
    assert "SAM's radius, the flatness of the loss" in said
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_object_holds_every_term_and_none_of_them_but_noise_and_clip_bears_on_privacy(discreet: Discreet):
    found = discreet("tradeoff sam --json").json
    assert found["epsilon"] == pytest.approx(9.373, abs=1e-3)
    assert found["lemma1"] == pytest.approx(0.004)
    terms = found["theorem3"]
    assert terms["total"] == pytest.approx(
        sum(terms[name] for name in ("optimisation", "variance", "clipping", "noise"))
    )
    assert terms["best_rounds"] == 1
    assert {found["theorem1"][name]["valid"] for name in ("sgd", "sam")} == {False}
    assert found["theorem4"]["epsilon"] < 1e-6 < found["round_epsilon"]
    assert found["theorem5"]["printed"]["reason"]
    assert found["theorem5"]["certified"]["gap"] == pytest.approx(4 * found["epsilon"])
    other = discreet("tradeoff sam --radius 0 --clip 5 --dimension 10 --smoothness 3 --local-steps 1 --json").json
    assert other["epsilon"] == found["epsilon"]
    assert "noise_multiplier" in found["bears_on_privacy"]
    assert "radius" not in found["bears_on_privacy"]


def test_a_learning_rate_beyond_a_denominator_has_no_number(discreet: Discreet):
    found = discreet("tradeoff sam --learning-rate 0.1 --json").json["theorem1"]
    assert (found["sgd"]["value"], found["sam"]["value"]) == ("inf", "inf")
    assert "has to be below 0.07454" in found["sgd"]["reason"]


@pytest.mark.parametrize("more", ["", "--radius 0 ", "--dimension 1000 "])
def test_it_is_drawn(more: str, discreet: Discreet, tmp_path: Path):
    ran = discreet(f"tradeoff sam {more}--picture", tmp_path / "sam.svg")
    assert (ran.code, ran.err) == (0, "")
    assert "Theorem 3" in (tmp_path / "sam.svg").read_text()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("--cohort 501", "A cohort of 501 can't be drawn from 500 clients"),
        ("--radius -1", "'--radius': must be at least 0"),
        ("--radius 1e13", "'--radius': must be at least 0 and at most 1e12, and got"),
        ("--clip 1e13", "'--clip': must be between 1e-6 and 1e12"),
        ("--fraction 0", "above 0 and at most 1"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_one_sentence(wrong: str, why: str, discreet: Discreet):
    ran = discreet(f"tradeoff sam {wrong}")
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert ran.err.count("\n") == 1
