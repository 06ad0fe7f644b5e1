import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy import gaussian

MUS = st.floats(min_value=1e-4, max_value=100)
DELTAS = st.floats(min_value=1e-12, max_value=0.4)


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """Balle & Wang 2018, Theorem 8, with 60 digits."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def test_one_release_at_noise_multiplier_one():
    assert gaussian.epsilon(1.0, 1e-5) == pytest.approx(4.377178, abs=1e-6)


def test_at_epsilon_zero_delta_is_the_total_variation():
    assert gaussian.delta(2.0, 0.0) == pytest.approx(math.erf(2 / math.sqrt(8)), rel=1e-14)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.3, 1.0, 1.01, 4.0, 40.0])
@pytest.mark.parametrize("near", [-2.0, 0.0, 1.0, 4.9, 5.1, 12.0, 30.0, 36.5])
def test_delta_keeps_its_digits_down_to_1e_minus_300(mu, near):
    epsilon = max(0.0, mu * (near + mu / 2))
    assert float(gaussian.delta(mu, epsilon) / exact_delta(mu, epsilon)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("log_probability", [-1e-12, -0.1, -0.6931, -0.7, -1.0, -27.6, -700.0, -1e4])
def test_the_quantile_inverts_the_survival_function_in_both_tails(log_probability):
    x = gaussian.upper_quantile(log_probability)
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2)
    assert float(exact / mpmath.mpf(log_probability)) == pytest.approx(1.0, abs=2e-14)
    assert gaussian.log_survival(x) == pytest.approx(log_probability, rel=2e-14)


def test_the_quantile_of_one_in_a_trillion():
    assert gaussian.upper_quantile(math.log(1e-12)) == pytest.approx(7.034483825301131, abs=1e-12)


@given(MUS, DELTAS)
def test_epsilon_is_on_the_safe_side_and_no_further_than_rounding(mu, delta):
    epsilon = gaussian.epsilon(mu, delta)
    assert gaussian.delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert gaussian.delta(mu, epsilon * (1 - 1e-12)) > delta * (1 - 1e-12)


@given(MUS, DELTAS)
def test_equivalent_mu_inverts_epsilon(mu, delta):
    epsilon = gaussian.epsilon(mu, delta)
    shown = gaussian.equivalent_mu(epsilon, delta)
    assert gaussian.delta(shown, epsilon) >= delta
    if epsilon > 1e-6:
        assert shown == pytest.approx(mu, rel=1e-8)


@given(MUS, st.floats(min_value=1e-12, max_value=0.999), st.floats(min_value=0, max_value=50))
def test_no_point_of_the_trade_off_curve_breaks_epsilon_and_delta(mu, fpr, epsilon):
    tpr = gaussian.true_positive_rate(mu, fpr)
    assert fpr <= tpr * (1 + 1e-12)
    assert tpr <= (math.exp(epsilon) * fpr + gaussian.delta(mu, epsilon)) * (1 + 1e-9)


def test_a_tenth_of_a_percent_of_false_alarms_finds_one_in_fifty_at_mu_one():
    assert gaussian.true_positive_rate(1.0, 0.001) == pytest.approx(0.0183, abs=1e-4)


def test_extremes_are_answered():
    assert gaussian.epsilon(5000.0, 1e-5) == pytest.approx(12_521_323.4544, abs=1e-3)  # z = 0.2, a million times
    assert gaussian.epsilon(1e-3, 1e-12) == pytest.approx(0.0056995464684, abs=1e-12)
    assert gaussian.epsilon(1.0, 1e-300) == pytest.approx(37.448847912, abs=1e-8)
    assert gaussian.epsilon(0.0, 1e-5) == 0
    assert gaussian.epsilon(1.0, 0.0) == math.inf
    assert gaussian.epsilon(1e200, 1e-5) == math.inf
    assert gaussian.delta(0.0, 0.0) == 0
    assert gaussian.equivalent_mu(math.inf, 1e-5) == math.inf
    assert gaussian.equivalent_mu(0.0, 0.0) == 0
    assert gaussian.true_positive_rate(1.0, 0.0) == 0
    assert gaussian.true_positive_rate(1.0, 1.0) == 1
