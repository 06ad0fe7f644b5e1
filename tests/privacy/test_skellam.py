import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy import skellam


def test_conditional_rounding_lets_through_what_the_paper_says():
    # 100 coordinates, norm 20: √(400 + 25 + 20 + 5) = √450, below the 30 that holds for every rounding.
    assert skellam.l2_after_rounding(20.0, 100) == pytest.approx(math.sqrt(450))
    assert skellam.l2_after_rounding(20.0, 100, retry=0.0) == 30


@given(st.floats(min_value=0, max_value=1e6), st.integers(min_value=1, max_value=10**9))
def test_rounding_never_shrinks_the_bound_and_conditioning_never_widens_it(norm, dimension):
    assert norm <= skellam.l2_after_rounding(norm, dimension) <= skellam.l2_after_rounding(norm, dimension, retry=0.0)


def test_integers_have_an_l1_norm_of_at_most_their_square():
    assert skellam.l1_of_integers(3.0, 10_000) == 9
    assert skellam.l1_of_integers(30.0, 100) == 300


def test_the_scale_that_fits_32_bits():
    # papers: 3 standard deviations, 10 clients, d = 26010, C = 1, σ_total 6.822; and the norm it inflates at 10 bits
    share = 6.822 / math.sqrt(10)
    assert skellam.scale_for_bits(16, 1.0, 10, 26_010, share) == pytest.approx(1601, abs=1)
    scale = skellam.scale_for_bits(10, 1.0, 10, 26_010, share)
    assert scale == pytest.approx(25.0, abs=0.05)
    assert skellam.l2_after_rounding(scale, 26_010) / scale == pytest.approx(3.400, abs=2e-3)
    assert skellam.scale_for_bits(2, 1.0, 10, 26_010, share) == 0  # nothing fits


def exact_divergence(order: int, variance: float, shift: int) -> float:
    k = np.arange(-6000, 6001)
    p, q = skellam.log_pmf(k - shift, variance), skellam.log_pmf(k, variance)
    return float(np.logaddexp.reduce(order * p - (order - 1) * q)) / (order - 1)


@pytest.mark.parametrize("variance", [2.0, 10.0, 200.0])
@pytest.mark.parametrize("shift", [1, 3])
def test_the_published_bound_lies_above_the_true_divergence(variance, shift):
    orders = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
    bounds = skellam.rdp_bound(orders, variance, l1=float(shift), l2=float(shift))
    for order, bound in zip(orders, bounds, strict=True):
        assert exact_divergence(int(order), variance, shift) <= bound


def test_the_published_bound_by_hand():
    # α = 2, v = 100, Δ1 = 10, Δ2 = 5: 2·25/200 + min((3·25 + 60)/40000, 0.15)
    assert skellam.rdp_bound([2.0], 100.0, l1=10.0, l2=5.0).tolist() == pytest.approx([0.253375])


def test_nothing_is_promised_at_orders_without_a_proof():
    assert skellam.rdp_bound([1.0, 1.5, 2.5, math.inf], 100.0, l1=1.0, l2=1.0).tolist() == [math.inf] * 4


@pytest.mark.parametrize("variance", [0.01, 0.6, 3.0, 50.0, 599.0, 601.0, 1e4])
def test_the_log_mass_agrees_with_mpmath_from_the_centre_to_37_deviations(variance):
    for deviations in (0, 1, 5, 20, 37):
        k = math.ceil(deviations * max(1.0, math.sqrt(variance)))
        with mpmath.workdps(40):
            exact = float(mpmath.log(mpmath.besseli(k, variance)) - variance)
        assert float(skellam.log_pmf(k, variance)) == pytest.approx(exact, rel=1e-14, abs=2e-13)
        assert float(skellam.log_pmf(-k, variance)) == float(skellam.log_pmf(k, variance))


@pytest.mark.parametrize("variance", [0.5, 30.0, 590.0, 1e4, 1e8])
def test_the_mass_sums_to_one_with_the_right_variance(variance):
    reach = math.ceil(40 + 40 * math.sqrt(variance))
    k = np.arange(-reach, reach + 1)
    mass = np.exp(skellam.log_pmf(k, variance))
    assert math.fsum(mass) == pytest.approx(1.0, rel=1e-12)
    assert math.fsum(mass * k * k) == pytest.approx(variance, rel=1e-12)
