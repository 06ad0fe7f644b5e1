"""Attack rates from Rényi divergences, and divergences of orders below 2."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy import accountant, gaussian, rdp
from discreet.privacy.attack_bound import bound_below_two, largest_true_positive_rate
from discreet.privacy.events import GaussianNoise, LaplaceNoise, PoissonSampled, Repeated, SkellamNoise

FINITE = rdp.ORDERS[:-1]
WEIGHTS = st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=6)


def renyi(first: np.ndarray, second: np.ndarray, order: float) -> float:
    return math.log(float((first**order * second ** (1 - order)).sum())) / (order - 1)


def skellam_sum(mu: float, rounds: int, deviation: float = 1e5) -> Repeated:
    """Return Skellam noise of so large a variance that it is as good as Gaussian noise of sensitivity `mu` in all."""
    moved = mu / math.sqrt(rounds) * deviation
    noise = SkellamNoise(variance=deviation**2, l2_sensitivity=moved, dimension=1000)
    return Repeated(count=rounds, event=noise)


@given(first=WEIGHTS, second=WEIGHTS, order=st.floats(1.001, 1.999))
def test_no_pair_diverges_more_between_orders_1_and_2_than_order_2_allows(first, second, order):
    size = min(len(first), len(second))
    p, q = (np.array(weights[:size]) / sum(weights[:size]) for weights in (first, second))
    at_two = max(0.0, renyi(p, q, 2), renyi(q, p, 2))
    assert (order - 1) * renyi(p, q, order) <= (order - 1) * bound_below_two(order, at_two) + 1e-14


@pytest.mark.parametrize("loss", [1e-3, 0.3, 2.0, 20.0])
@pytest.mark.parametrize("order", [1.003, 1.5, 1.99])
def test_randomised_response_attains_the_bound(loss, order):
    p = np.array([1.0, math.exp(-loss)]) / (1 + math.exp(-loss))
    exact = renyi(p, p[::-1], order)
    assert bound_below_two(order, renyi(p, p[::-1], 2)) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("at_two", [1e-8, 1e-4, 0.01])
def test_small_divergences_below_order_2_are_nearly_those_of_gaussian_noise(at_two):
    """Gaussian noise has α·v/2 where order 2 has v; a chord would say v at all of them."""
    for order in (1.003, 1.3, 1.9):
        assert order * at_two / 2 <= bound_below_two(order, at_two) <= order * at_two / 2 * (1 + at_two) * (1 + 1e-9)


@given(at_two=st.floats(0, 1e4), order=st.floats(1.0001, 1.9999))
def test_a_divergence_below_order_2_is_never_above_the_one_at_order_2(at_two, order):
    assert 0 <= bound_below_two(order, at_two) <= at_two


def test_an_unknown_divergence_stays_unknown():
    assert bound_below_two(1.5, math.inf) == math.inf


@pytest.mark.parametrize("mu", [0.05, 0.7, 1.558, 4.0])
@pytest.mark.parametrize("rate", [1e-6, 0.001, 0.1, 0.7])
def test_the_bound_is_above_the_best_attack_on_gaussian_noise_and_below_every_hockey_stick(mu, rate):
    values = FINITE * mu**2 / 2
    found = largest_true_positive_rate(FINITE, values, rate)
    assert gaussian.true_positive_rate(mu, rate) <= found
    for epsilon in np.linspace(0.0, -math.log(rate), 50).tolist():
        assert found <= rdp._delta(FINITE, values, epsilon) + math.exp(epsilon) * rate + 1e-12


@given(loss=st.floats(0.01, 10), rate=st.floats(1e-6, 0.999))
def test_a_pure_bound_alone_gives_its_exact_trade_off(loss, rate):
    """ε-DP admits exactly TPR ≤ e^ε·FPR and 1 − FPR ≤ e^ε·(1 − TPR)."""
    exact = min(math.exp(loss) * rate, 1 - math.exp(-loss) * (1 - rate))
    found = largest_true_positive_rate(np.array([np.inf]), np.array([loss]), rate)
    assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("value", "expected"), [(np.inf, 1.0), (0.0, 0.1)])
def test_unknown_divergences_exclude_no_attack_and_zero_excludes_all(value, expected):
    found = largest_true_positive_rate(FINITE, np.full(FINITE.shape, value), 0.1)
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("mu", [0.3, 1.0, 1.558])
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.1])
def test_skellam_noise_is_attacked_as_little_as_gaussian_noise(mu, rate):
    exact = gaussian.true_positive_rate(mu, rate)
    assert exact * (1 - 1e-9) <= accountant.true_positive_rate(skellam_sum(mu, 200), rate) <= exact * (1 + 1e-3)


@pytest.mark.parametrize("mu", [0.3, 1.0, 1.558])
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.1])
def test_divergences_of_skellam_noise_allow_as_little_as_those_of_gaussian_noise(mu, rate):
    """Before, 1000 of 1,000 units at 100 false alarms for μ = 1.558; the exact value of Gaussian noise is 609."""
    found = rdp.true_positive_rate(skellam_sum(mu, 200), rate)
    assert found >= gaussian.true_positive_rate(mu, rate) * (1 - 1e-9)
    by_divergences = rdp.true_positive_rate(Repeated(count=1, event=GaussianNoise(noise_multiplier=1 / mu)), rate)
    assert by_divergences * (1 - 1e-3) <= found <= by_divergences * 1.07
    if (mu, rate) == (1.558, 0.1):
        assert found < 0.77


@pytest.mark.parametrize(("value", "at_zero"), [(0.0, 0.0), (3.0, 0.0), (np.inf, 1.0)])
def test_without_false_alarms_nothing_is_detected_where_a_divergence_is_known(value, at_zero):
    """D_α(b‖0) is infinite for every b > 0, so a finite bound at any order leaves b = 0."""
    assert largest_true_positive_rate(rdp.ORDERS, np.full(rdp.ORDERS.shape, value), 0.0) == at_zero


@pytest.mark.parametrize("value", [0.0, 3.0, np.inf])
def test_an_attack_that_always_alarms_detects_every_unit(value):
    assert largest_true_positive_rate(rdp.ORDERS, np.full(rdp.ORDERS.shape, value), 1.0) == 1.0


@pytest.mark.parametrize(
    "event",
    [
        skellam_sum(1.0, 4),
        GaussianNoise(noise_multiplier=1.0),
        PoissonSampled(sampling_rate=0.5, event=GaussianNoise(noise_multiplier=1.0)),
        Repeated(count=3, event=LaplaceNoise(noise_multiplier=1.0)),
    ],
)
def test_every_accountant_answers_at_both_ends_of_the_rates(event):
    assert accountant.true_positive_rate(event, 1.0) == 1.0
    assert accountant.true_positive_rate(event, 0.0) == 0.0
