"""`discreet tradeoff clients`: rows, one object, a picture, and refusals."""

import math
from pathlib import Path

import pytest

from tests.cli.conftest import Discreet


def test_without_options_it_answers_for_the_papers_mnist(discreet: Discreet):
    ran = discreet("tradeoff clients")
    assert ran.code == 0
    assert "Each with 6,000 examples of its own" in ran.out
    assert "Sharing 60,000 examples" in ran.out
    assert "whose mean is the best model" in " ".join(ran.out.split())
    assert "takes the spread of clients' models to be the noise alone" in " ".join(ran.out.split())
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_object_has_a_row_for_every_number_of_clients_both_ways(discreet: Discreet):
    found = discreet("tradeoff clients --clients 100,10,10 --json").json
    own, shared = found["own_examples"], found["shared_pool"]
    assert [each["clients"] for each in own] == [each["clients"] for each in shared] == [10, 100]
    assert [each["examples"] for each in own] == [6000, 6000]
    assert [each["examples"] for each in shared] == [6000, 600]
    for each in [*own, *shared]:
        noise = each["mean_noise"]
        assert noise["local"] == pytest.approx(each["noise_multiplier"] / math.sqrt(each["clients"]))
        assert noise["shared"] == pytest.approx(each["noise_multiplier"] / each["clients"])
        assert each["utility"]["corrected"] < each["utility"]["printed"]
    assert own[0]["noise_multiplier"] == own[1]["noise_multiplier"] == pytest.approx(1.531, abs=5e-4)
    assert shared[1]["noise_multiplier"] > 2 * own[1]["noise_multiplier"]
    assert any("takes the spread of clients' models to be the noise alone" in note for note in found["notes"])


def test_a_bias_takes_from_the_utility_whatever_the_number_of_clients(discreet: Discreet):
    plain, biased = (
        discreet(f"tradeoff clients --clients 500 {more} --json").json["own_examples"][0]["utility"]["corrected"]
        for more in ("", "--bias 0.25")
    )
    assert plain - biased == pytest.approx(0.25)  # (0.25/0.5)²


def test_it_is_drawn(discreet: Discreet, tmp_path: Path):
    ran = discreet("tradeoff clients --clients 1,10 --picture", tmp_path / "clients.svg")
    assert (ran.code, ran.err) == (0, "")
    drawn = (tmp_path / "clients.svg").read_text()
    assert "Theorem 3" in drawn
    assert "the noise alone" in drawn


def test_no_table_cuts_a_number(discreet: Discreet):
    page = discreet("tradeoff clients --clients 10,1000000 --examples 1e9 --pool 1e9").out
    assert "…" not in page
    assert "1e9" in page
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("--clients 10,x", "must be a number, and got 'x'"),
        ("--clients 10,", "must be a number, and got ''"),
        ("--clients 0", "at least 1"),
        ("--clients 70000", "60000 examples can't be shared by 70000 clients"),
        ("--bias -1", "must be at least 0"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_one_sentence(wrong: str, why: str, discreet: Discreet):
    ran = discreet(f"tradeoff clients {wrong}")
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert ran.err.count("\n") == 1
