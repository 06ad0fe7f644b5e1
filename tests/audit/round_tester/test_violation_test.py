"""Tests of sets on two samples whose true divergence is known. The stated false-alarm rate is 1e-6 for each test."""

import numpy as np
import pytest

from discreet.audit.round_tester.claimed_curve import ClaimedCurve
from discreet.audit.round_tester.decision_scores import learn_scores
from discreet.audit.round_tester.violation_test import compare_quickly, run_tests
from discreet.errors import InvalidInput
from discreet.privacy.events import GaussianNoise, LaplaceNoise

ROWS, ERROR = 40_000, 1e-6


def normal(seed: int, shift: float = 0.0, spread: float = 1.0, columns: int = 2) -> np.ndarray:
    drawn = spread * np.random.default_rng(seed).standard_normal((ROWS, columns))
    drawn[:, 0] += shift
    return drawn


def claim(noise: float) -> ClaimedCurve:
    return ClaimedCurve.from_event(GaussianNoise(noise_multiplier=noise), "add_or_remove", 1e-5)


def measure(first: np.ndarray, second: np.ndarray, curve: ClaimedCurve) -> tuple[bool, float]:
    tests = run_tests(first, second, curve, ERROR)
    assert len(tests) <= 9
    return any(test.excess > 0 for test in tests), max(test.epsilon for test in tests)


def test_two_samples_of_one_distribution_prove_nothing() -> None:
    violated, epsilon = measure(normal(1), normal(2), claim(5.0))
    assert not violated
    assert epsilon == 0


def test_a_shift_is_measured_and_a_true_claim_holds() -> None:
    curve = claim(1.0)
    violated, epsilon = measure(normal(1, 1.0), normal(2), curve)
    assert not violated
    assert 0.3 * curve.epsilon < epsilon < curve.epsilon


def test_most_of_the_advantage_of_a_shift_is_measured() -> None:
    """Twice the normal distribution function at half the shift, less 1: 0.383."""
    curve = claim(1.0)
    best = max(test.advantage for test in run_tests(normal(1, 1.0), normal(2), curve, ERROR))
    assert curve.advantage == pytest.approx(0.383, abs=1e-3)
    assert 0.85 * curve.advantage < best < curve.advantage
    assert ClaimedCurve.from_point(1.0, 0.0).advantage == pytest.approx(np.tanh(0.5))


def test_a_claim_of_a_fifth_more_noise_is_contradicted() -> None:
    assert measure(normal(1, 1.0), normal(2), claim(1.2))[0]


@pytest.mark.parametrize("swapped", [False, True])
def test_both_directions_are_tested(swapped: bool) -> None:
    """A narrow distribution is found in a wide one's middle, a wide one in the narrow one's tails."""
    narrow, wide = normal(1, spread=0.5), normal(2)
    first, second = (wide, narrow) if swapped else (narrow, wide)
    assert measure(first, second, ClaimedCurve.from_point(0.4, 1e-5))[0]


def test_points_of_a_lattice_are_told_apart() -> None:
    """Even numbers against odd ones: their means and variances are the same."""
    even = 2.0 * np.random.default_rng(1).integers(-20, 20, (ROWS, 1))
    odd = 2.0 * np.random.default_rng(2).integers(-20, 20, (ROWS, 1)) + 1
    assert measure(even, odd, ClaimedCurve.from_point(2.0, 1e-5))[0]


def test_a_dependence_of_two_numbers_is_found() -> None:
    """Signs that agree against signs that don't: each number alone has the same distribution."""
    signs = np.sign(normal(1))
    agree = np.abs(normal(2)) * signs[:, :1]
    assert measure(agree, np.abs(normal(3)) * signs * np.array([1, -1]), ClaimedCurve.from_point(0.5, 1e-5))[0]


def test_a_result_that_is_not_finite_is_found() -> None:
    broken = normal(1)
    broken[:, 1] = np.where(np.arange(ROWS) % 2, np.nan, np.inf)
    assert measure(broken, normal(2), ClaimedCurve.from_point(3.0, 1e-5))[0]


def test_a_constant_observation_proves_nothing() -> None:
    assert measure(np.zeros((ROWS, 2)), np.zeros((ROWS, 2)), claim(1.0)) == (False, 0.0)


def test_a_quick_comparison_says_how_much_of_a_claim_is_used_up() -> None:
    curve, few = claim(1.0), slice(0, 4000)
    assert compare_quickly(normal(1)[few], normal(2)[few], curve) < 0.1
    assert 0.6 < compare_quickly(normal(1, 1.0)[few], normal(2)[few], curve) < 1.2
    assert compare_quickly(normal(1, 2.0)[few], normal(2)[few], curve) > 1.5


def test_scores_have_names_that_say_what_they_are() -> None:
    names = [score.name for score in learn_scores(normal(1)[:500], normal(2)[:500])]
    assert {"half-space: coordinate 0", "normal likelihood ratio", "logistic regression"} <= set(names)
    assert "histogram: distance from the middle" in names


def test_a_curve_allows_the_least_of_all_its_pairs() -> None:
    curve = ClaimedCurve.from_event(LaplaceNoise(noise_multiplier=1.0), "add_or_remove", 1e-5)
    assert curve.largest_rate(1e-3)[0] == pytest.approx(np.e * 1e-3, rel=0.01)
    assert curve.largest_rate(1.0)[0] == 1


def test_a_claim_must_be_a_pair_of_numbers_in_range() -> None:
    with pytest.raises(InvalidInput, match="at a δ in"):
        ClaimedCurve.from_point(1.0, 1.0)
