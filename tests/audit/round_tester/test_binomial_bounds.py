"""Clopper and Pearson's bounds, compared with the quantiles of the beta distribution."""

import math

import pytest
from scipy import special, stats

from discreet.audit.round_tester.binomial_bounds import log_binomial_tail, lower_bound, upper_bound

CASES = [(1, 10), (5, 10), (10, 10), (3, 50_000), (700, 50_000), (25_000, 50_000), (499_990, 500_000)]


@pytest.mark.parametrize(("count", "trials"), CASES)
@pytest.mark.parametrize("error", [0.05, 1e-9])
def test_the_bounds_are_quantiles_of_the_beta_distribution(count: int, trials: int, error: float) -> None:
    assert lower_bound(count, trials, error) == pytest.approx(
        special.betaincinv(count, trials - count + 1, error), rel=1e-8
    )
    above = 1.0 if count == trials else 1 - special.betaincinv(trials - count, count + 1, error)
    assert upper_bound(count, trials, error) == pytest.approx(above, rel=1e-8)


def test_what_never_happened_may_be_impossible_or_rare() -> None:
    assert lower_bound(0, 100, 1e-6) == 0
    assert upper_bound(0, 100, 1e-6) == pytest.approx(1 - 1e-6 ** (1 / 100))


def test_the_tail_of_the_distribution_is_exact_far_out() -> None:
    found = log_binomial_tail(90, 1000, 0.01)
    assert found == pytest.approx(stats.binom.logsf(89, 1000, 0.01), rel=1e-9)
    assert found < math.log(1e-50)


def test_the_tail_has_its_limits() -> None:
    assert log_binomial_tail(0, 5, 0.3) == 0
    assert log_binomial_tail(6, 5, 0.3) == -math.inf
    assert log_binomial_tail(2, 5, 0.0) == -math.inf
    assert log_binomial_tail(2, 5, 1.0) == 0
