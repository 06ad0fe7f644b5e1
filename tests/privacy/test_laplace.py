"""Laplace noise, sampled and not: no ε, δ, attack rate or divergence is below the true one at 50 digits."""

import random

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from discreet.privacy import pld, rdp
from discreet.privacy.release import Relation
from tests.privacy.laplace_reference import (
    exact_delta,
    exact_delta_of_two_steps,
    exact_divergence,
    exact_epsilon,
    exact_true_positive_rate,
    laplace_step,
)
from tests.privacy.recipes import laplace

ADD: Relation = "add_or_remove"
REPLACE: Relation = "replace"
LEFT_OUT = 2.1e-10  # of δ: what the accountant adds for mass outside its window

# Each of these was low once, by 1e-7 to 2e-6 of itself: e^(tilt·loss) was integrated over panels too wide for the tilt.
EPSILONS: list[tuple[float, float, float, Relation]] = [
    (60.0, 0.5, 1e-4, ADD),
    (60.0, 0.1, 3e-5, REPLACE),
    (60.0, 0.9, 3e-4, REPLACE),
    (60.0, 1.0, 3e-4, REPLACE),
    (60.0, 1.0, 3e-4, ADD),
    (60.0, 0.1, 3e-5, ADD),
    (60.0, 0.01, 1e-6, ADD),
    (20.0, 0.9, 3e-4, ADD),
    (20.0, 1.0, 3e-4, ADD),
    (20.0, 0.1, 3e-5, ADD),
    (20.0, 0.5, 3e-4, REPLACE),
    (20.0, 1.0, 3e-4, REPLACE),
    (200.0, 0.9, 1e-4, REPLACE),
    (200.0, 1.0, 1e-4, REPLACE),
    (200.0, 0.01, 1e-6, REPLACE),
    (5.0, 0.5, 3e-4, ADD),
]
# These too, by 4e-7 to 9e-6; the last four by rounding, since their divergences are far smaller than 1.
DIVERGENCES: list[tuple[float, float, float, Relation]] = [
    (60.0, 0.01, 1e5, ADD),
    (60.0, 0.9, 1000.0, ADD),
    (60.0, 0.9, 1000.0, REPLACE),
    (60.0, 0.5, 1000.0, REPLACE),
    (20.0, 0.5, 1000.0, ADD),
    (20.0, 0.01, 1e5, REPLACE),
    (5.0, 0.5, 1000.0, ADD),
    (5.0, 0.9, 1000.0, ADD),
    (1.0, 0.001, 1e5, ADD),
    (0.5, 0.1, 1000.0, ADD),
    (2.0, 0.01, 1e5, ADD),
    (5.0, 0.1, 1000.0, REPLACE),
    (1e9, 1.0, 2.0, ADD),
    (1e7, 1.0, 1.1, REPLACE),
    (1e5, 1e-4, 1.5, ADD),
    (200.0, 1e-4, 1.03, REPLACE),
]


@pytest.mark.parametrize(("noise", "rate", "delta", "relation"), EPSILONS)
def test_one_step_is_never_below_its_exact_epsilon(noise: float, rate: float, delta: float, relation: Relation) -> None:
    found, exact = pld.epsilon(laplace_step(noise, rate), delta, relation), exact_epsilon(noise, rate, delta, relation)
    assert exact <= mpf(found) <= exact * (1 + mpf("1e-4"))


@pytest.mark.parametrize(("noise", "rate", "order", "relation"), DIVERGENCES)
def test_the_divergence_is_never_below_its_integral(
    noise: float, rate: float, order: float, relation: Relation
) -> None:
    found = float(rdp.curve(laplace_step(noise, rate), np.array([order]), relation)[0])
    exact = exact_divergence(noise, rate, order, relation)
    assert exact <= mpf(found) <= exact * (1 + mpf("1e-8"))


@pytest.mark.parametrize(("noise", "relation"), [(3.0, ADD), (7.0, ADD), (0.3, REPLACE), (41.0, REPLACE)])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_pure_epsilon_is_rounded_up(noise: float, rate: float, relation: Relation) -> None:
    """At a tiny δ, and by an infinite order; a quotient such as 1/3 is not a double."""
    step, exact = laplace_step(noise, rate), exact_epsilon(noise, rate, 0.0, relation)
    for found in (pld.epsilon(step, 1e-300, relation), float(rdp.curve(step, np.array([np.inf]), relation)[0])):
        assert exact <= mpf(found) <= exact * (1 + mpf("1e-14"))


@pytest.mark.parametrize(
    ("noise", "rate", "share"), [(1.0, 1.0, 0.3), (1.0, 0.2, 0.5), (20.0, 0.7, 0.9), (0.3, 0.01, 0.6)]
)
def test_two_steps_are_never_below_their_integral(noise: float, rate: float, share: float) -> None:
    epsilon = 2 * share * float(exact_epsilon(noise, rate, 0.0, ADD))
    exact = exact_delta_of_two_steps(noise, rate, epsilon)
    assert exact <= mpf(pld.delta(laplace(noise, rate=rate, times=2), epsilon)) <= exact * (1 + mpf("3e-3"))


def test_two_unsampled_steps_have_the_closed_form_of_the_note() -> None:
    """docs/notes/laplace.md: the reference itself, at s = t = 1 and ε ≤ 2."""
    for epsilon in (0.0, 0.5, 1.7):
        closed = 1 - (1 + (2 - mpf(epsilon)) / 4) * mpmath.exp((mpf(epsilon) - 2) / 2)
        assert float(exact_delta_of_two_steps(1.0, 1.0, epsilon)) == pytest.approx(float(closed), rel=1e-12)


def test_a_delta_too_small_for_a_double_is_not_reported_as_none() -> None:
    assert 0 < pld.delta(laplace(1.0, times=2000), 1999.9) < 1e-300  # all 2000 losses are 1 with probability 2^−2000
    assert pld.delta(laplace(1.0, times=2000), 2000.0) == 0


def test_a_tiny_rate_and_a_huge_loss_keep_their_digits() -> None:
    step, exact = laplace_step(0.011, 1e-60), exact_epsilon(0.011, 1e-60, 0.0, ADD)  # 3e-21
    assert exact <= mpf(float(rdp.curve(step, np.array([np.inf]))[0])) <= exact * (1 + mpf("1e-13"))
    assert mpf(pld.delta(step, float(exact * mpf("0.9")))) >= exact_delta(0.011, 1e-60, exact * mpf("0.9"), ADD)


@pytest.mark.parametrize("below", [1e-3, 1e-6, 5e-9, 1e-11])
def test_a_delta_just_below_the_largest_loss_keeps_its_digits(below: float) -> None:
    """All losses above ε are within a millionth of it there, so P's mass and Q's differ in the last digits."""
    for noise in np.geomspace(100.0, 3000.0, 20).tolist():
        epsilon = float(exact_epsilon(noise, 0.8355, 0.0, ADD)) * (1 - below)
        exact = exact_delta(noise, 0.8355, epsilon, ADD)
        found = mpf(pld.delta(laplace_step(noise, 0.8355), epsilon))
        assert exact <= found <= exact * (1 + mpf("1e-3") + mpf("1e-14") / below), noise


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_random_steps_are_never_below_the_truth(seed: int) -> None:
    """A hundred for each seed. None is below; 95 of 100 ε are within 1e-3, all within 1e-2 (apart from omitted δ)."""
    draw = random.Random(seed)
    within = 0
    for index in range(100):
        noise, rate, relation = _random_step(draw)
        step, at = laplace_step(noise, rate), (noise, rate, relation)

        delta = draw.choice(
            [10 ** draw.uniform(-12, -1), draw.random() * float(exact_delta(noise, rate, 0.0, relation))]
        )
        epsilon, exact = mpf(pld.epsilon(step, delta, relation)), exact_epsilon(noise, rate, delta, relation)
        allowed = exact_epsilon(noise, rate, max(0.0, 0.999 * delta - LEFT_OUT), relation) * mpf("1.01")
        assert exact <= epsilon <= allowed, (at, delta)
        if index % 5 == 0:  # it takes longer than everything else
            assert mpf(rdp.epsilon(step, delta, relation)) >= exact, (at, delta)
        within += epsilon <= exact * (1 + mpf("1e-3"))

        pure = float(exact_epsilon(noise, rate, 0.0, relation))
        epsilon = pure * draw.choice([draw.random(), 1 - 10 ** draw.uniform(-9, -1)])
        found, exact = mpf(pld.delta(step, epsilon, relation)), exact_delta(noise, rate, epsilon, relation)
        nearby = exact_delta(noise, rate, epsilon * (1 - 1e-3), relation)
        assert exact <= found <= nearby * (1 + mpf("1e-3")) + LEFT_OUT, (at, epsilon)

        alarms = draw.choice([10 ** draw.uniform(-9, -0.01), draw.random()])
        found = mpf(pld.true_positive_rate(step, alarms, relation))
        exact = exact_true_positive_rate(noise, rate, alarms, relation)
        assert exact <= found <= exact * (1 + mpf("0.05")) + 3 * LEFT_OUT, (at, alarms)
    assert within >= 95


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_random_divergences_are_never_below_the_truth(seed: int) -> None:
    """A hundred for each seed, and none is above by more than 1e-8."""
    draw = random.Random(100 + seed)
    for _ in range(100):
        noise, rate, relation = _random_step(draw)
        order = 1 + 10 ** draw.uniform(-2.5, 6)
        found = mpf(float(rdp.curve(laplace_step(noise, rate), np.array([order]), relation)[0]))
        exact = exact_divergence(noise, rate, order, relation)
        assert exact <= found <= exact * (1 + mpf("1e-8")), (noise, rate, order, relation)


def _random_step(draw: random.Random) -> tuple[float, float, Relation]:
    """Draw noise over five decades, and rates over four and close to 1."""
    rate = draw.choice([1.0, draw.random(), 10 ** draw.uniform(-4, 0), 1 - 10 ** draw.uniform(-9, -2)])
    return 10 ** draw.uniform(-1.99, 3), rate, draw.choice([ADD, REPLACE])
