import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy import classical, gaussian, pld, rdp
from discreet.privacy.classical import METHODS, amplify
from discreet.privacy.events import (
    Composed,
    DiscreteGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    SkellamNoise,
    Step,
    steps,
)
from tests.privacy import recipes

BASIC, ADVANCED, MOMENTS = METHODS["basic"], METHODS["advanced"], METHODS["moments"]


def test_basic_composition_adds_exact_gaussians_at_an_equal_share_of_delta():
    ten: dict[Step, int] = {GaussianNoise(noise_multiplier=2.0): 10}
    assert BASIC.epsilon(ten, 1e-5, "add_or_remove") == pytest.approx(10 * gaussian.epsilon(0.5, 1e-6))


def test_laplace_noise_needs_no_delta():
    assert BASIC.epsilon({LaplaceNoise(noise_multiplier=10.0): 100}, 1e-5, "add_or_remove") == pytest.approx(10.0)
    mixed: dict[Step, int] = {LaplaceNoise(noise_multiplier=10.0): 100, GaussianNoise(noise_multiplier=2.0): 1}
    assert BASIC.epsilon(mixed, 1e-5, "add_or_remove") == pytest.approx(10 + gaussian.epsilon(0.5, 1e-5))


def test_advanced_composition_of_laplace_by_hand():
    # 100 steps of 0.1, with 0.99·δ for the slack: 100·0.1·tanh(0.05) + √(2·ln(1/0.99e-5)·100·0.01)
    by_hand = 10 * math.tanh(0.05) + math.sqrt(2 * math.log(1 / 0.99e-5))
    assert ADVANCED.epsilon({LaplaceNoise(noise_multiplier=10.0): 100}, 1e-5, "add_or_remove") == pytest.approx(by_hand)


def test_amplification_by_sampling_by_hand_and_without_overflow():
    assert amplify(1.0, 0.1) == pytest.approx(math.log(0.9 + 0.1 * math.e))
    assert amplify(1e6, 0.1) == pytest.approx(1e6 + math.log(0.1))
    assert amplify(2.0, 1.0) == 2.0


def test_one_sampled_step_is_exact():
    one = steps(recipes.gaussian(1.0, rate=0.1))
    assert BASIC.epsilon(one, 1e-5, "add_or_remove") == pytest.approx(1.684544, abs=1e-6)


def test_replacing_halves_the_noise_multiplier():
    for z, half in ((2.0, 1.0), (5.0, 2.5)):
        whole: dict[Step, int] = {GaussianNoise(noise_multiplier=z): 7}
        halved: dict[Step, int] = {GaussianNoise(noise_multiplier=half): 7}
        for method in METHODS.values():
            assert method.epsilon(whole, 1e-5, "replace") == method.epsilon(halved, 1e-5, "add_or_remove")


def test_the_log_moment_is_abadis_integral():
    # α(2) for q = 0.1, z = 1: log E_P[(P/Q)²], here by summing the densities
    x = np.linspace(-12, 14, 260_001)
    q = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    p = 0.9 * q + 0.1 * np.exp(-((x - 1) ** 2) / 2) / math.sqrt(2 * math.pi)
    integral = math.log(float(np.sum(p * (p / q) ** 2)) * (x[1] - x[0]))
    step = next(iter(steps(recipes.gaussian(1.0, rate=0.1))))
    assert classical._log_moment(step, 2, "add_or_remove") == pytest.approx(integral, rel=1e-9)


def test_the_moments_accountant_is_mironovs_conversion_at_orders_2_to_33():
    event = recipes.gaussian(1.0, rate=0.01, times=1000)
    orders = np.arange(2.0, 34.0)
    published = rdp.epsilon(event, 1e-5, orders=orders, conversion="mironov")
    assert MOMENTS.epsilon(steps(event), 1e-5, "add_or_remove") == pytest.approx(published, rel=1e-9)
    assert published == pytest.approx(2.5383, abs=1e-4)


@given(
    st.floats(min_value=0.8, max_value=8),
    st.floats(min_value=0.005, max_value=0.3),
    st.integers(min_value=20, max_value=2000),
    st.sampled_from([1e-4, 1e-5, 1e-7]),
)
def test_newer_accountants_are_tighter(z, rate, times, delta):
    event = recipes.gaussian(z, rate=rate, times=times)
    moments = MOMENTS.epsilon(steps(event), delta, "add_or_remove")
    advanced = ADVANCED.epsilon(steps(event), delta, "add_or_remove")
    assert pld.epsilon(event, delta) <= rdp.epsilon(event, delta) * (1 + 1e-9)
    assert rdp.epsilon(event, delta) <= min(moments, advanced) * (1 + 1e-9)
    assert advanced <= BASIC.epsilon(steps(event), delta, "add_or_remove")


@given(st.floats(min_value=0.3, max_value=50), st.integers(min_value=1, max_value=50), st.integers(1, 50))
def test_steps_add_up_the_same_in_one_entry_or_two(z, first, second):
    near: dict[Step, int] = {GaussianNoise(noise_multiplier=z): first + second}
    apart: dict[Step, int] = {
        GaussianNoise(noise_multiplier=z): first,
        GaussianNoise(noise_multiplier=z * (1 + 1e-13)): second,
    }
    for method in METHODS.values():
        together = method.epsilon(near, 1e-5, "add_or_remove")
        assert method.epsilon(apart, 1e-5, "add_or_remove") == pytest.approx(together, rel=1e-9)


def test_what_each_covers():
    fixed = steps(recipes.fixed_size(1.0, cohort=5, population=50))
    poisson = steps(recipes.gaussian(1.0, rate=0.1))
    other: dict[Step, int] = {DiscreteGaussianNoise(variance=4.0, l2_sensitivity=1.0): 1}
    skellam: dict[Step, int] = {SkellamNoise(variance=4.0, l2_sensitivity=1.0, dimension=3): 1}
    assert ADVANCED.supports(fixed, "replace")
    assert not ADVANCED.supports(fixed, "add_or_remove")
    assert not MOMENTS.supports(fixed, "replace")
    assert MOMENTS.supports(poisson, "zero_out")
    assert not MOMENTS.supports(poisson, "replace")
    assert not any(method.supports(each, "replace") for method in METHODS.values() for each in (other, skellam))


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (recipes.gaussian(0.2, times=10**6), 1e-12),
        (recipes.gaussian(500.0, times=10**6), 1e-12),
        (recipes.gaussian(0.2, rate=1e-6, times=10**6), 1e-12),
        (recipes.gaussian(0.01, rate=0.5, times=10**6), 1e-12),
        (recipes.laplace(0.01, rate=0.5, times=10**6), 1e-12),
        (Composed(events=()), 1e-5),
    ],
)
def test_extremes_are_answered(event, delta):
    for method in METHODS.values():
        if method.supports(steps(event), "add_or_remove"):
            assert 0 <= method.epsilon(steps(event), delta, "add_or_remove") < math.inf
