"""The Gaussian estimator: what it finds, and how often its bound is too high."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from discreet.audit.estimators.binomial_tails import lower_limit, upper_limit
from discreet.audit.estimators.deviation_limit import chi_square_quantile, normality_p_value, upper_deviation
from discreet.audit.estimators.estimate import ScoredCanaries
from discreet.audit.estimators.gaussian_estimator import SeenEntries, estimate_by_gaussian, measured_points
from discreet.audit.estimators.score_pairs import Design
from discreet.errors import InvalidInput
from discreet.privacy import gaussian
from discreet.privacy.accountant import epsilon as certified_epsilon
from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated

DELTA = 1e-5


def draw_entries(random, design, *, noise, canaries):
    """Draw what is seen in each round: the entries of a canary, and noise of this deviation."""
    present = random.random(canaries) < 0.5
    entries = random.binomial(design.trials, design.rate, (canaries, design.rounds))
    counts = np.where(present, 1.0, -1.0 if design.opposite else 0.0)[:, None] * entries
    drawn = random.laplace(scale=math.sqrt(0.5), size=counts.shape)
    if design.noise == "gaussian":
        drawn = random.standard_normal(counts.shape)
    return SeenEntries((counts + noise * drawn).ravel(), counts.ravel(), canaries, int(present.sum()))


def test_limits_agree_with_scipy():
    assert chi_square_quantile(99, 0.025) == pytest.approx(stats.chi2.ppf(0.025, 99), rel=1e-9)
    assert chi_square_quantile(3, 1e-6) == pytest.approx(stats.chi2.ppf(1e-6, 3), rel=1e-9)
    assert lower_limit(7, 20, 0.025) == pytest.approx(stats.beta.ppf(0.025, 7, 14), rel=1e-9)
    assert upper_limit(7, 20, 0.025) == pytest.approx(stats.beta.ppf(0.975, 8, 13), rel=1e-9)
    assert (lower_limit(0, 5, 0.1), upper_limit(5, 5, 0.1)) == (0, 1)


def test_the_deviation_of_residuals_is_below_its_limit():
    assert upper_deviation(99.0, 99, 0.025) == pytest.approx(math.sqrt(99 / stats.chi2.ppf(0.025, 99)), rel=1e-9)


def test_normal_scores_look_normal_and_laplace_ones_do_not():
    random = np.random.default_rng(1)
    assert normality_p_value(random.standard_normal(500)) > 0.01
    assert normality_p_value(random.laplace(size=500)) < 1e-6


def test_more_observations_bring_the_bound_and_its_reach_nearer_to_each_other():
    """The reach is the upper end of the interval whose lower end is the bound."""
    design, truth = Design(1), gaussian.epsilon(1.0, DELTA)
    few, many = (
        estimate_by_gaussian(
            draw_entries(np.random.default_rng(3), design, noise=1.0, canaries=number), design, delta=DELTA
        )
        for number in (100, 10_000)
    )
    assert few.lower_bound < many.lower_bound < truth < many.details["reach"] < few.details["reach"]


@pytest.mark.parametrize("rounds", [1, 30])
def test_the_pair_of_a_constant_entry_is_the_gaussian_mechanism(rounds):
    assert Design(rounds).epsilon(0.3, DELTA) == gaussian.epsilon(0.3 * math.sqrt(rounds), DELTA)
    assert Design(rounds, opposite=True).epsilon(0.3, DELTA) == gaussian.epsilon(0.6 * math.sqrt(rounds), DELTA)


@pytest.mark.parametrize(
    ("rounds", "rate", "noise"), [(1, 0.5, 0.7), (5, 0.5, 2.254), (100, 0.1, 1.0), (400, 0.02, 1.0)]
)
def test_the_pair_of_a_sampled_entry_is_below_the_accountant_and_near_it(rounds, rate, noise):
    event = Repeated(
        count=rounds, event=PoissonSampled(sampling_rate=rate, event=GaussianNoise(noise_multiplier=noise))
    )
    certified = certified_epsilon(event, DELTA)
    assert 0.98 * certified <= Design(rounds, rate=rate).epsilon(1 / noise, DELTA) <= certified


def test_the_measured_delta_belongs_to_the_measured_epsilon():
    design = Design(5, trials=2, rate=0.5)
    assert design.delta(0.4, design.epsilon(0.4, DELTA)) == pytest.approx(DELTA, rel=1e-5)


def test_scores_that_say_nothing_give_a_bound_of_zero():
    random = np.random.default_rng(2)
    found = SeenEntries(random.standard_normal(1000), (random.random(1000) < 0.5).astype(float), 1000, 500)
    assert estimate_by_gaussian(found, Design(1), delta=DELTA, confidence=1 - 1e-6).lower_bound == 0


LAPLACE = Design(3, opposite=True, noise="laplace")
DESIGNS = [Design(10), Design(10, rate=0.5), Design(3, trials=4, rate=0.3), Design(5, opposite=True), LAPLACE]


@pytest.mark.parametrize("design", DESIGNS)
def test_a_thousand_canaries_measure_most_of_the_true_epsilon(design):
    found = draw_entries(np.random.default_rng(8), design, noise=2.0, canaries=1000)
    true = design.epsilon(1 / 2, DELTA)
    estimate = estimate_by_gaussian(found, design, delta=DELTA)
    points = measured_points(estimate, design)
    assert 0.7 * true < estimate.lower_bound < true
    assert len(points) == 5
    assert all(design.epsilon(1 / 2, delta) >= epsilon for epsilon, delta in points)


def test_the_pair_of_laplace_noise_is_nearly_its_pure_epsilon():
    """One entry of 1 under Laplace noise of scale 2 and its opposite differ by 2/2 in ε, in each of three rounds."""
    deviation = 2 * math.sqrt(2)
    assert 2.9 < LAPLACE.epsilon(1 / deviation, DELTA) <= 3


@pytest.mark.parametrize("design", DESIGNS)
def test_the_bound_exceeds_the_truth_no_more_often_than_stated(design):
    """Of 500 bounds at 80 % at most 100 are expected above; 150 or more have a probability below 1e-7."""
    random, noise = np.random.default_rng(4), 2.0
    found = (draw_entries(random, design, noise=noise, canaries=30) for _ in range(500))
    signals = [_signal(each, design, 0.8) for each in found]
    assert sum(signal > 1 / noise for signal in signals) < 150


def _signal(found, design, confidence):
    """The bound before it becomes an ε, of which it is a monotone function."""
    estimate = estimate_by_gaussian(found, replace(design, rounds=1, rate=1.0), delta=DELTA, confidence=confidence)
    return estimate.details["signal"]


def test_the_bound_is_not_far_below_its_confidence():
    """Two limits share the error: of 400 bounds at 80 %, about 10 % should be above the truth, and some must be."""
    random = np.random.default_rng(5)
    found = (draw_entries(random, Design(4), noise=2.0, canaries=60) for _ in range(400))
    assert sum(_signal(each, Design(4), 0.8) > 0.5 for each in found) >= 8


def test_half_the_noise_is_measured_as_more_than_the_stated_noise_allows():
    found = draw_entries(np.random.default_rng(6), Design(5), noise=1.5, canaries=1000)
    assert estimate_by_gaussian(found, Design(5), delta=DELTA).lower_bound > Design(5).epsilon(1 / 3, DELTA)


@pytest.mark.parametrize(("drawn", "stated"), [("laplace", "gaussian"), ("gaussian", "laplace")])
def test_noise_of_another_kind_gives_a_bound_of_zero(drawn, stated):
    found = draw_entries(np.random.default_rng(7), Design(1, noise=drawn), noise=1.0, canaries=3000)
    estimate = estimate_by_gaussian(found, Design(1, noise=stated), delta=DELTA)
    assert estimate.lower_bound == 0
    assert not estimate.details["looks_as_stated"]
    assert measured_points(estimate, Design(1)) == ()


def test_what_carries_no_noise_is_refused():
    with pytest.raises(InvalidInput, match="carries none"):
        estimate_by_gaussian(
            SeenEntries(np.array([0.0, 0, 1, 1]), np.array([0.0, 0, 1, 1]), 4, 2), Design(1), delta=DELTA
        )


def test_without_absent_canaries_nothing_is_measured():
    found = SeenEntries(np.array([0.0, 1.0, 2.0]), np.ones(3), 3, 3)
    assert estimate_by_gaussian(found, Design(1), delta=DELTA).lower_bound == 0


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(InvalidInput, match="finite"):
        ScoredCanaries.of_one_run(np.array([0.0, math.nan]), np.array([True, False]))


@pytest.mark.parametrize("confidence", [0.2, 1.0])
def test_a_confidence_that_says_nothing_is_refused(confidence):
    with pytest.raises(InvalidInput, match="confidence must be"):
        estimate_by_gaussian(SeenEntries(np.zeros(0), np.zeros(0), 0, 0), Design(1), delta=0.1, confidence=confidence)
