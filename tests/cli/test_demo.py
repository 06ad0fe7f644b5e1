"""The demo computes the numbers that it shows."""

import pytest

from tests.cli.conftest import Discreet


def test_the_tour_ends_where_to_go_next(discreet: Discreet):
    ran = discreet("demo")
    assert (ran.code, ran.err) == (0, "")
    for heading in ("1. What does", "2. How much", "Guarantee card", "4. And one more round", "Where to go next"):
        assert heading in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_its_numbers_are_those_of_the_commands_it_names(discreet: Discreet):
    tour = discreet("demo --json").json
    assert tour["account"]["epsilon"] == pytest.approx(25.2046, abs=1e-3)
    plan = discreet("account gaussian --epsilon 2 --sampling-rate 0.5 --steps 100 --delta 0.0001 --json").json
    assert tour["plan"] == plan
    assert tour["guarantee"]["epsilon"] == plan["epsilon"] <= 2
    assert tour["refusal"]["exit_code"] == 3
    noise = f"--noise-multiplier {plan['noise_multiplier']} --sampling-rate 0.5 --delta 0.0001"
    one_more = discreet(f"account gaussian {noise} --steps 101 --json").json["epsilon"]
    assert f"would raise epsilon to {one_more:.4g}" in tour["refusal"]["message"]
