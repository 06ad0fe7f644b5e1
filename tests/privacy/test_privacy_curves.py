"""Curves of an event: closed forms of Gaussian noise, pure events, and that no point contradicts another."""

import math

import pytest

from discreet.errors import Unsupported
from discreet.privacy import gaussian
from discreet.privacy.events import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomAllocation,
    RandomisedResponse,
    Repeated,
    ZeroConcentrated,
    sampled_gaussian,
)
from discreet.privacy.privacy_curves import DELTAS, RATES, compute_curves, epsilon_curve, trade_off_curve
from discreet.privacy.release import Relation

NOISE = GaussianNoise(noise_multiplier=0.8)


def test_gaussian_noise_has_its_closed_forms() -> None:
    for point in epsilon_curve(NOISE):
        assert point.epsilon == pytest.approx(gaussian.epsilon(1.25, point.delta))
    for rates in trade_off_curve(NOISE):
        missed = 1 - gaussian.true_positive_rate(1.25, rates.false_positive_rate)
        assert rates.false_negative_rate == pytest.approx(missed)


def test_laplace_noise_has_the_trade_off_of_its_thresholds() -> None:
    """With b = 1, P[x > t] is e^(−t)/2 without the unit and e^(1 − t)/2 with it, for t ≥ 1 (Dong, Roth & Su 2019)."""
    for point in trade_off_curve(LaplaceNoise(noise_multiplier=1.0), rates=(0.01, 0.05, 0.15)):
        exact = 1 - math.e * point.false_positive_rate
        assert exact - 1e-3 <= point.false_negative_rate <= exact + 1e-9


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (sampled_gaussian(1.0, 0.01, 200), "add_or_remove"),
        (RandomAllocation(bins=20, event=NOISE), "zero_out"),
        (Repeated(count=3, event=RandomisedResponse(categories=5, random_share=0.5)), "replace"),
        (ZeroConcentrated(rho=0.1), "replace"),
    ],
    ids=lambda value: getattr(value, "kind", value),
)
def test_neither_curve_rises_and_the_two_agree(event: Event, relation: Relation) -> None:
    curves = compute_curves(event, relation, 1e-5)
    epsilons = [point.epsilon for point in curves.epsilons]
    missed = [point.false_negative_rate for point in curves.trade_off]
    assert epsilons == sorted(epsilons, reverse=True)
    assert missed == sorted(missed, reverse=True)
    assert [point.delta for point in curves.epsilons if point.delta == 1e-5] == [1e-5]
    # A test that beat the first curve would have 1 − β > e^ε·α + δ; the second says how small β can be.
    for alpha, beta in curves.trade_off[::7]:
        assert all(1 - beta <= math.exp(epsilon) * alpha + delta + 2e-3 for delta, epsilon in curves.epsilons[::7])


def test_the_usual_places_are_ascending_and_reach_far() -> None:
    assert list(DELTAS) == sorted(DELTAS)
    assert list(RATES) == sorted(RATES)
    assert (DELTAS[0], DELTAS[-1]) == pytest.approx((1e-12, 0.1))
    assert (RATES[0], RATES[-1]) == pytest.approx((0.0009, 0.9991), abs=1e-4)


def test_what_is_not_proven_has_no_curve() -> None:
    with pytest.raises(Unsupported, match="replace only"):
        epsilon_curve(RandomisedResponse(categories=2, random_share=0.5), "add_or_remove")
