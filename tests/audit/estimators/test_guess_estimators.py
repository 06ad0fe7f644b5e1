"""The estimators that count guesses: their theorems on small cases, what they find, and how often they exceed ε."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from discreet.audit.estimators.binomial_tails import binomial_survival
from discreet.audit.estimators.estimate import ScoredCanaries
from discreet.audit.estimators.one_run_estimator import estimate_by_guesses, guess_numbers, p_value, smallest_epsilon
from discreet.audit.estimators.repeated_estimator import estimate_by_repetition
from discreet.audit.estimators.trade_off_estimator import (
    estimate_by_trade_off,
    gaussian_rates,
    is_rejected,
    private_rates,
)
from discreet.errors import InvalidInput
from discreet.privacy import gaussian

DELTA = 1e-5


def draw_canaries(random, mu, canaries, runs=1):
    """Draw scores N(0, 1), and N(μ, 1) for present canaries."""
    present = random.random(canaries * runs) < 0.5
    scores = random.standard_normal(canaries * runs) + mu * present
    return ScoredCanaries(scores, present, np.repeat(np.arange(runs), canaries))


def test_binomial_tails_agree_with_scipy():
    assert binomial_survival(50, 0.3) == pytest.approx(stats.binom.sf(np.arange(-1, 51), 50, 0.3), abs=1e-13)
    assert binomial_survival(3, 1.0).tolist() == [1, 1, 1, 1, 0]


def test_without_delta_the_p_value_is_that_of_randomised_response():
    assert p_value(100, 20, 18, 1.0, 0.0) == pytest.approx(stats.binom.sf(17, 20, 1 / (1 + math.exp(-1))))


def test_delta_adds_the_largest_slope_of_the_tail():
    tail = [stats.binom.sf(v - 1, 20, 1 / (1 + math.exp(-1))) for v in range(22)]
    slope = max((tail[18 - i] - tail[18]) / i for i in range(1, 19))
    assert p_value(100, 20, 18, 1.0, 1e-4) == pytest.approx(tail[18] + 2 * 100 * 1e-4 * slope)


def test_the_smallest_epsilon_is_where_the_p_value_is_the_error():
    epsilon = smallest_epsilon(100, 50, 45, DELTA, 0.05)
    assert p_value(100, 50, 45, epsilon, DELTA) == pytest.approx(0.05, rel=1e-3)
    assert smallest_epsilon(100, 50, 25, DELTA, 0.05) == 0


def test_numbers_of_guesses_are_even_and_follow_from_the_number_of_canaries():
    assert guess_numbers(1000) == [50, 100, 200, 400, 1000]
    assert guess_numbers(1) == []


@pytest.mark.parametrize("estimate", [estimate_by_guesses, estimate_by_trade_off])
def test_scores_that_say_nothing_give_a_bound_of_zero(estimate):
    found = draw_canaries(np.random.default_rng(1), 0.0, 1000)
    assert estimate(found, delta=DELTA, confidence=1 - 1e-6).lower_bound == 0


def test_repeated_runs_that_say_nothing_give_a_bound_of_zero():
    found = draw_canaries(np.random.default_rng(1), 0.0, 1, runs=400)
    assert estimate_by_repetition(found, delta=DELTA, confidence=1 - 1e-6).lower_bound == 0


def test_trade_offs_measure_more_than_counting_and_less_than_the_truth():
    found, true = draw_canaries(np.random.default_rng(2), 2.0, 1000), gaussian.epsilon(2.0, DELTA)
    counted, traded = (
        estimate(found, delta=DELTA).lower_bound for estimate in (estimate_by_guesses, estimate_by_trade_off)
    )
    assert 0 < counted < traded < true
    assert traded > 0.5 * true


@pytest.mark.parametrize(
    "estimate",
    [
        estimate_by_guesses,
        lambda found, **levels: estimate_by_trade_off(found, is_gaussian=True, **levels),
        lambda found, **levels: estimate_by_trade_off(found, is_gaussian=False, **levels),
    ],
)
def test_one_run_bounds_exceed_the_true_epsilon_no_more_often_than_stated(estimate):
    """At 80 % at most 40 of 200 are expected above; 85 or more have a probability below 1e-10."""
    random, true = np.random.default_rng(3), gaussian.epsilon(1.0, 0.01)
    bounds = [estimate(draw_canaries(random, 1.0, 40), delta=0.01, confidence=0.8).lower_bound for _ in range(200)]
    assert sum(bound > true for bound in bounds) < 85
    assert max(bounds) > 0


def test_repeated_bounds_exceed_the_true_epsilon_no_more_often_than_stated():
    """At 80 % at most 20 of 100 are expected above; 45 or more have a probability below 1e-7."""
    random, true = np.random.default_rng(4), gaussian.epsilon(1.0, 0.01)
    found = (draw_canaries(random, 1.0, 1, runs=60) for _ in range(100))
    bounds = [estimate_by_repetition(each, delta=0.01, confidence=0.8).lower_bound for each in found]
    assert sum(bound > true for bound in bounds) < 45
    assert max(bounds) > 0


def test_repeated_runs_count_one_canary_each():
    found = draw_canaries(np.random.default_rng(5), 3.0, 7, runs=200)
    estimate = estimate_by_repetition(found, delta=DELTA)
    assert estimate.canaries == 200
    assert 1 < estimate.lower_bound < gaussian.epsilon(3.0, DELTA)


def test_few_repeated_runs_are_refused():
    with pytest.raises(InvalidInput, match="at least 8"):
        estimate_by_repetition(draw_canaries(np.random.default_rng(6), 1.0, 5, runs=3), delta=DELTA)


def test_the_least_false_positive_rates_are_inverse_trade_offs():
    rate = gaussian_rates(1.5)
    for alarms in (0.001, 0.2, 0.9):
        assert rate(gaussian.true_positive_rate(1.5, alarms)) == pytest.approx(alarms, rel=1e-9)
    private = private_rates(1.0, 0.1)
    assert private(0.1) == 0
    assert private(0.1 + math.e * 0.05) == pytest.approx(0.05)


@pytest.mark.parametrize(("canaries", "guesses"), [(6, 6), (8, 4), (12, 10)])
@pytest.mark.parametrize("rate", [private_rates(0.7, 0.02), private_rates(2.0, 0.0)])
def test_the_recursion_finds_the_largest_probability_that_the_constraints_allow(canaries, guesses, rate):
    """Compare with a linear program over all distributions of the number of correct guesses."""
    for correct in (guesses // 2 + 1, guesses):
        most = _largest_probability(canaries, guesses, correct, rate)
        assert is_rejected(rate, canaries, guesses, correct, most * 1.001 + 1e-9)
        assert not is_rejected(rate, canaries, guesses, correct, most * 0.999 - 1e-9)


def _largest_probability(canaries, guesses, correct, rate):
    counts = np.arange(guesses + 1)
    rows, limits = [], []
    for threshold in range(guesses):
        found = np.where(counts > threshold, counts, 0) / canaries
        missed = np.where(counts >= threshold, guesses - counts, 0) / canaries
        for slope, cut in _lines(rate):  # rate is the largest of lines: slope·r + cut ≤ h
            rows.append(slope * found - missed)
            limits.append(-cut)
    result = optimize.linprog(
        -(counts >= correct).astype(float), np.array(rows), limits, np.ones((1, guesses + 1)), [1.0], bounds=(0, 1)
    )
    assert result.fun is not None
    return -result.fun


def _lines(rate):
    """The two lines of an (ε, δ) trade-off, found from its values near both ends."""
    for left, right in ((0.3, 0.301), (1 - 1e-4, 1 - 2e-4)):
        slope = (rate(left) - rate(right)) / (left - right)
        yield slope, rate(left) - slope * left


@pytest.mark.parametrize("present", list(itertools.product([False, True], repeat=2)))
def test_two_canaries_show_nothing(present):
    found = ScoredCanaries.of_one_run(np.array([0.0, 1.0]), np.array(present))
    assert estimate_by_guesses(found, delta=DELTA).lower_bound == 0
