"""Rényi curves: closed forms against integrals by mpmath."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Unsupported
from discreet.privacy import pld, rdp
from discreet.privacy.events import (
    DiscreteGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    SkellamNoise,
)
from tests.privacy.recipes import fixed_size, gaussian, laplace


def sampled_gaussian(order: float, rate: float, z: float) -> float:
    """The definition, at 30 digits: log E_Q[(1 − q + q·P/Q)^α]/(α − 1)."""
    with mpmath.workdps(30):
        q, s = mpmath.mpf(rate), mpmath.mpf(z)

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x, 0, s) * (1 - q + q * mpmath.exp((2 * x - 1) / (2 * s * s))) ** order

        ends = [k * s for k in (-30, -10, -5, -2, 0)] + [1, 2, 3, 5, 8, order + 1, order + 10 * s, order + 30 * s]
        return float(mpmath.log(mpmath.quad(integrand, sorted(set(ends)))) / (order - 1))


@pytest.mark.parametrize("order", [1.31, 2.0, 2.26, 5.5, 17.0])
@pytest.mark.parametrize(("rate", "z"), [(0.1, 0.95), (0.01, 0.7), (0.5, 2.0)])
def test_the_sampled_gaussian_is_its_integral_at_whole_and_fractional_orders(
    order: float, rate: float, z: float
) -> None:
    found = rdp.curve(gaussian(z, rate=rate), np.array([order]))[0]
    assert found == pytest.approx(sampled_gaussian(order, rate, z), rel=1e-9)


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_laplace_is_its_integral(order: float) -> None:
    with mpmath.workdps(30):

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(-order * abs(x - 1) / 2 - (1 - order) * abs(x) / 2) / 4

        exact = float(mpmath.log(mpmath.quad(integrand, [-200, -20, 0, 1, 20, 200])) / (order - 1))
    assert rdp.curve(LaplaceNoise(noise_multiplier=2.0), np.array([order]))[0] == pytest.approx(exact, rel=1e-9)


def test_laplace_at_order_infinity_is_pure_epsilon_sampled_or_not() -> None:
    orders = np.array([np.inf])
    assert rdp.curve(laplace(2.0, times=3), orders)[0] == pytest.approx(1.5)
    assert rdp.curve(laplace(2.0, rate=0.1), orders)[0] == pytest.approx(math.log(1 + 0.1 * math.expm1(0.5)))


def test_whole_orders_of_sampled_laplace_agree_with_the_general_formula() -> None:
    noise = LaplaceNoise(noise_multiplier=1.0)
    orders = np.array([2.0, 3.0, 10.0])
    general = rdp._poisson_curve(0.2, orders, lambda at: rdp._unsampled_curve(noise, at))
    assert rdp.curve(PoissonSampled(sampling_rate=0.2, event=noise), orders) == pytest.approx(general, rel=1e-9)


def test_a_tiny_rate_loses_no_digits() -> None:
    found = rdp.curve(gaussian(1.0, rate=1e-8), np.array([2.0]))[0]
    assert found == pytest.approx(1e-16 * math.expm1(1.0), rel=1e-9)


@pytest.mark.parametrize(("rate", "z", "order"), [(1.3e-5, 4.0, 1.22), (1e-4, 1.0, 1.07), (1e-7, 2.0, 2.5)])
def test_a_divergence_far_below_one_is_never_below_its_integral(rate: float, z: float, order: float) -> None:
    """The first two were low by 4e-5 and 2e-7. E_Q[(1 + u)^α − 1 − αu] with u = q(P/Q − 1) is the moment, less 1."""
    with mpmath.workdps(50):
        q, s, a = mpmath.mpf(rate), mpmath.mpf(z), mpmath.mpf(order)

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            moved = q * mpmath.expm1((2 * x - 1) / (2 * s * s))
            return mpmath.npdf(x, 0, s) * (mpmath.exp(a * mpmath.log1p(moved)) - 1 - a * moved)

        ends = [k * s for k in range(-12, 21)]
        exact = mpmath.log1p(mpmath.quad(integrand, ends, maxdegree=4, method="gauss-legendre")) / (a - 1)
        found = mpmath.mpf(float(rdp.curve(gaussian(z, rate=rate), np.array([order]))[0]))
        assert exact <= found <= exact * (1 + mpmath.mpf("1e-8"))


def test_between_whole_orders_a_chord_is_an_upper_bound() -> None:
    noise = GaussianNoise(noise_multiplier=1.0)
    orders = np.array([1.3, 2.5, 7.9])
    chords = rdp._interpolate(
        lambda at: rdp._poisson_curve(0.1, at, lambda inner: rdp._unsampled_curve(noise, inner)), orders
    )
    exact = rdp.curve(gaussian(1.0, rate=0.1), orders)
    assert (chords >= exact).all()


def test_discrete_gaussian_is_counted_as_its_concentrated_bound() -> None:
    event = DiscreteGaussianNoise(variance=25.0, l2_sensitivity=5.0)
    assert rdp.curve(event, np.array([2.0, 8.0])) == pytest.approx([1.0, 4.0])
    assert rdp.curve(event, np.array([2.0]), "replace") == pytest.approx([4.0])


def test_skellam_is_a_little_worse_than_gaussian_noise_of_its_variance() -> None:
    event = PoissonSampled(sampling_rate=0.1, event=SkellamNoise(variance=1e4, l2_sensitivity=100.0, dimension=1000))
    orders = np.arange(2.0, 20.0)
    assert (rdp.curve(event, orders) > rdp.curve(gaussian(1.0, rate=0.1), orders)).all()
    fine = PoissonSampled(sampling_rate=0.1, event=SkellamNoise(variance=1e12, l2_sensitivity=1e6, dimension=1000))
    assert rdp.curve(fine, orders) == pytest.approx(rdp.curve(gaussian(1.0, rate=0.1), orders), rel=1e-4)


def test_without_replacement_needs_the_relation_replace() -> None:
    with pytest.raises(Unsupported, match="under the relation replace only"):
        rdp.curve(fixed_size(1.0, cohort=5, population=50), np.array([2.0]))


def test_sampling_never_costs_more_than_not_sampling() -> None:
    for noise in (GaussianNoise(noise_multiplier=2.0), SkellamNoise(variance=100.0, l2_sensitivity=5.0, dimension=50)):
        sampled = SampledWithoutReplacement(cohort=9, population=10, event=noise)
        assert (
            rdp.curve(sampled, rdp.ORDERS, "replace") <= rdp.curve(noise, rdp.ORDERS, "replace") * (1 + 1e-12)
        ).all()


def test_the_tight_conversion_is_never_above_mironovs() -> None:
    event = gaussian(1.0, rate=0.1, times=50)
    assert rdp.epsilon(event, 1e-5) < rdp.epsilon(event, 1e-5, conversion="mironov")


def test_delta_inverts_epsilon() -> None:
    event = gaussian(1.0, rate=0.1, times=50)
    assert rdp.delta(event, rdp.epsilon(event, 1e-5, orders=rdp.ORDERS)) == pytest.approx(1e-5, rel=1e-9)
    assert rdp.delta(laplace(2.0), 0.5) == 0.0


@settings(max_examples=25)
@given(z=st.floats(0.3, 20), rate=st.floats(1e-5, 1), times=st.integers(1, 2000), log_delta=st.floats(-12, -2))
def test_rdp_is_never_below_pld(z: float, rate: float, times: int, log_delta: float) -> None:
    for event in (gaussian(z, rate=rate, times=times), laplace(z, rate=rate, times=times)):
        for relation in ("add_or_remove", "replace"):
            tight = pld.epsilon(event, 10**log_delta, relation)
            assert rdp.epsilon(event, 10**log_delta, relation) >= tight * (1 - 2e-4) - 1e-9
            rate_at = 0.01
            found = rdp.true_positive_rate(event, rate_at, relation)
            assert found >= pld.true_positive_rate(event, rate_at, relation) * (1 - 2e-4)


def test_repetition_multiplies_the_curve() -> None:
    once = gaussian(1.0, rate=0.1)
    orders = np.array([1.5, 2.0, 33.0])
    assert rdp.curve(Repeated(count=7, event=once), orders) == pytest.approx(7 * rdp.curve(once, orders))
