"""`discreet tradeoff cohort`: planned and published shares, claims, rings, a picture, and refusals."""

import math
from pathlib import Path

import pytest

from discreet.planning.curves.dropout_panel import dropout_counts, dropout_panel
from discreet.planning.theory.heikkila_cohorts import ClientWork, Cohort, planned_share
from discreet.privacy import accountant
from discreet.privacy.events import sampled_gaussian
from tests.cli.conftest import Discreet


def test_without_options_it_answers_for_the_papers_fashion_mnist(discreet: Discreet):
    ran = discreet("tradeoff cohort")
    assert ran.code == 0
    said = " ".join(ran.out.split())
    assert "ε = 1 takes a noise multiplier of 5.181 in the sum" in said
    assert "1 may collude and 1 may drop out" in said
    assert "That state carries the client's own noise alone" in said
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_object_has_planned_shares_and_the_papers_beside_what_both_are_worth(discreet: Discreet):
    found = discreet("tradeoff cohort --clients 1,10,100 --bits 32 --json").json
    assert [each["clients"] for each in found["cohorts"]] == [10, 100]  # with one client nobody is left
    assert any(note.startswith("Left out: N = 1, where no honest client would remain") for note in found["notes"])
    for each in found["cohorts"]:
        planned, papers = each["planned"], each["paper"]
        assert planned["share"] * math.sqrt(each["left"]) == pytest.approx(found["noise_multiplier"])
        assert planned["epsilon"] == pytest.approx(1.0, abs=2e-5)
        assert planned["epsilon"] < papers["epsilon"] < planned["own_state_epsilon"] < papers["own_state_epsilon"]
        assert papers["if_all_come"]["epsilon"] == pytest.approx(1.0, abs=2e-5)
    assert found["claim"]["holds"] is False


def test_a_given_share_has_the_papers_numbers(discreet: Discreet):
    """σ = 2.1573 of each of ten: 6.822 in the sum, 0.73 for it, and 2.875 for steps at a client's own state."""
    found = discreet("tradeoff cohort --clients 10 --share 2.1573 --colluding 0 --dropouts 0 --bits 32 --json").json
    (ten,) = found["cohorts"]
    assert "paper" not in ten
    assert ten["planned"]["noise_multiplier"] == pytest.approx(6.822, abs=5e-4)
    assert ten["planned"]["epsilon"] == pytest.approx(0.7326, abs=5e-5)
    assert ten["planned"]["own_state_epsilon"] == pytest.approx(2.875, abs=5e-4)
    assert found["least_clients"] == math.ceil((found["noise_multiplier"] / 2.1573) ** 2) == 6
    page = discreet("tradeoff cohort --share 2.1573 --colluding 0 --dropouts 0 --bits 32").out
    assert "with a share of 2.1573, 6 clients" in " ".join(page.split())


def test_one_step_a_round_is_certified_as_it_is_claimed(discreet: Discreet):
    found = discreet("tradeoff cohort --clients 10 --steps 1 --bits 32 --json").json
    (ten,) = found["cohorts"]
    assert found["claim"]["holds"] is True
    assert ten["planned"]["own_state_epsilon"] == ten["planned"]["epsilon"]


def test_more_bits_cost_less_until_the_lattice_no_longer_shows_and_too_few_hold_nothing(discreet: Discreet):
    """A sum of 20 clients contains 220 rounded sums; their rounding alone may leave a ring that ends at 127."""
    asked = "--clients 10 --ring-clients 20 --colluding 0 --dropouts 0 --bits 8,20,24,28,32,40"
    found = discreet(f"tradeoff cohort {asked} --json").json
    few, *rings = found["bits"]["rings"]
    assert (few["epsilon"], few["valid"], few["scale"]) == ("inf", False, None)
    assert "A ring of 8 bits is too small" in few["reason"]
    costs = [each["epsilon"] for each in rings]
    assert costs == sorted(costs, reverse=True)
    assert 1 < costs[-1] < costs[-2] < 1.01  # of the planned ε: a dominating Gaussian has nearly the same variance
    assert rings[-1]["noise_multiplier"] == pytest.approx(found["noise_multiplier"], rel=1e-3)
    assert all(each["noise_multiplier"] < found["noise_multiplier"] for each in rings)


def test_a_ring_that_holds_nothing_is_named_on_the_page(discreet: Discreet):
    assert "A ring of 8 bits is too small" in discreet("tradeoff cohort --clients 10 --ring-clients 20 --bits 8").out


def test_a_wrong_ring_is_refused_before_anything_is_computed(discreet: Discreet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("discreet.planning.theory.heikkila_cohorts.calibrate_noise", lambda *_: pytest.fail("computed"))
    assert discreet("tradeoff cohort --bits 1").code == 2


def test_more_noise_than_can_be_counted_costs_no_more_than_the_most(discreet: Discreet):
    (found,) = discreet("tradeoff cohort --clients 1e12 --share 1e12 --bits 32 --json").json["cohorts"]
    assert found["planned"]["noise_multiplier"] == pytest.approx(1e18)
    assert found["planned"]["epsilon"] == pytest.approx(0, abs=1e-9)


def test_it_is_drawn(discreet: Discreet, tmp_path: Path):
    ran = discreet("tradeoff cohort --clients 10,100 --bits 12,32 --picture", tmp_path / "cohort.svg")
    assert (ran.code, ran.err) == (0, "")
    drawn = (tmp_path / "cohort.svg").read_text()
    assert "claimed: Theorem 4.6" in drawn
    assert "Drop-outs among 10 clients, 1 of which may collude" in drawn


def test_more_drop_outs_than_a_share_allows_for_cost_what_the_noise_of_those_left_does():
    """Ten clients, one colludes, and a share for one more: at d the ε of √(9 − d)/√8 times the noise."""
    work, ten = ClientWork(sampling_rate=0.1, steps=1, rounds=20), Cohort(clients=10, colluding=1, dropouts=1)
    share = planned_share(5.0, ten)
    panel = dropout_panel(work, ten, {"planned": share}, 1e-5)
    (planned,) = panel.curves
    assert [point.x for point in planned.points] == list(range(9))
    for point in planned.points:
        left = 5.0 * math.sqrt((9 - point.x) / 8)
        assert point.y == pytest.approx(accountant.epsilon(sampled_gaussian(left, 0.1, 20), 1e-5), rel=1e-6)
    assert dropout_counts(Cohort(clients=10**6, dropouts=7))[:2] == [0, 7]
    assert dropout_counts(Cohort(clients=2, colluding=1)) == [0]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("--colluding 20", "Of at most 10 clients, 20 collude and 1 drop out"),
        ("--clients 2 --colluding 1 --dropouts 1", "Of at most 2 clients"),
        ("--bits 32,1", "--bits must be 8 to 62, and got 1."),
        ("--bits 63", "--bits must be 8 to 62, and got 63."),
        ("--ring-clients 1e12", "--ring-clients must be at most 1,000,000"),
        ("--share 1e-300", "between 1e-6 and 1e12"),
        ("--colluding -1", "must be at least 0"),
        ("--sampling-rate 2", "above 0 and at most 1"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_one_sentence(wrong: str, why: str, discreet: Discreet):
    ran = discreet(f"tradeoff cohort {wrong}")
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert ran.err.count("\n") == 1
