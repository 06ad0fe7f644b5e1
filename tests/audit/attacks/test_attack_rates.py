"""The ROC curve of an attack and its exact intervals."""

import numpy as np
import pytest
from scipy.stats import binom

from discreet.audit.attacks.attack_rates import Roc, clopper_pearson
from discreet.audit.attacks.membership_scores import (
    likelihood_ratio_scores,
    logit_confidence,
    loss_threshold_scores,
)

ALONE = np.arange(400)


def test_scores_that_separate_members_have_area_one():
    roc = Roc.from_scores(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, True, False, False]))
    assert roc.area == 1
    assert roc.rate_at(0.001).true_positives == 2
    assert roc.rate_at(0.001).false_positives == 0


def test_equal_scores_recognise_nobody_without_false_alarms():
    roc = Roc.from_scores(np.zeros(10), np.arange(10) < 5)
    assert roc.area == 0.5
    assert roc.rate_at(0.5).true_positives == 0
    assert roc.rate_at(1.0).true_positives == 5


def test_a_threshold_never_exceeds_the_rate_of_false_alarms():
    scores = np.random.default_rng(1).normal(size=1000)
    roc = Roc.from_scores(scores, np.arange(1000) < 300)
    for rate in (0.001, 0.01, 0.1, 0.5):
        assert roc.rate_at(rate).false_positives / 700 <= rate


def test_the_points_of_a_curve_rise_from_a_few_false_alarms_to_everybody():
    roc = Roc.from_scores(np.random.default_rng(2).normal(size=500), np.arange(500) < 250)
    points = roc.points()
    assert points[0][0] == pytest.approx(5 / 250)
    assert points[-1] == (1.0, 1.0)
    assert points == sorted(points)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 20), (10, 10), (7, 5000)])
def test_both_ends_of_the_interval_make_the_outcome_as_rare_as_stated(successes, trials):
    low, high = clopper_pearson(successes, trials, 0.95)
    if successes:
        assert binom.sf(successes - 1, trials, low) == pytest.approx(0.025, rel=1e-5)
    else:
        assert low == 0
    if successes < trials:
        assert binom.cdf(successes, trials, high) == pytest.approx(0.025, rel=1e-5)
    else:
        assert high == 1


def test_the_confidence_of_a_loss_is_its_logit():
    assert logit_confidence(np.array([-np.log(0.9)])) == pytest.approx([np.log(9)])
    assert np.isfinite(logit_confidence(np.array([0.0, 1e9]))).all()


def test_the_mean_loss_of_a_unit_is_its_score():
    scores = loss_threshold_scores(np.array([[1.0, 3.0, 5.0]]), np.array([0, 0, 1]))
    assert scores.tolist() == [[-2.0, -5.0]]


def test_the_likelihood_ratio_finds_examples_that_are_hard_for_the_loss_alone():
    """Half of the examples are always easy: a loss can't tell them from members, and a ratio can."""
    draw = np.random.default_rng(3)
    present = draw.random((24, 400)) < 0.5
    level = np.where(ALONE % 2, 20.0, 0.0)
    confidences = level + draw.normal(size=present.shape) + 4.0 * present
    ratio = Roc.from_scores(likelihood_ratio_scores(confidences, present, ALONE).ravel(), present.ravel())
    loss = Roc.from_scores(loss_threshold_scores(-confidences, ALONE).ravel(), present.ravel())
    assert ratio.rate_at(0.01).true_positive_rate > 0.9
    assert loss.rate_at(0.01).true_positive_rate < 0.5


def test_coins_that_leave_no_trace_are_guessed_at_chance():
    """The area over 9,600 pairs has a standard deviation of 0.006; it leaves 0.5 ± 0.04 once in 10^10 seeds."""
    draw = np.random.default_rng(4)
    present = draw.random((24, 400)) < 0.5
    scores = likelihood_ratio_scores(draw.normal(size=present.shape), present, ALONE)
    assert abs(Roc.from_scores(scores.ravel(), present.ravel()).area - 0.5) < 0.04


def test_the_scores_of_a_model_depend_on_the_coins_of_the_others_only():
    draw = np.random.default_rng(5)
    present = draw.random((10, 400)) < 0.5
    confidences = draw.normal(size=present.shape)
    changed = present.copy()
    changed[3] = ~changed[3]
    scores = [likelihood_ratio_scores(confidences, coins, ALONE)[3] for coins in (present, changed)]
    assert np.array_equal(*scores)
