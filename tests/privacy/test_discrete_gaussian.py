"""Sums of discrete Gaussian noise: the published bound against divergences of convolved masses, summed exactly."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import Unsupported
from discreet.part import from_plain, to_plain
from discreet.privacy import accountant, discrete_gaussian, dp_accounting_events, pld, rdp
from discreet.privacy.dominating_pairs import dominating_pair
from discreet.privacy.events import (
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    Event,
    GaussianNoise,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    scale_sensitivity,
)
from discreet.privacy.groups import group_event
from discreet.privacy.wording import describe_event

Logs = NDArray[np.float64]

ORDERS = [1.001, 1.1, 1.5, 2.0, 4.0, 10.0]
REACH = 150


def log_mass(variance: float) -> Logs:
    """Return the log masses of one discrete Gaussian at −REACH … REACH."""
    exponent = -(np.arange(-REACH, REACH + 1.0) ** 2) / (2 * variance)
    return np.asarray(exponent - np.logaddexp.reduce(exponent))


def log_sum(variance: float, shares: int) -> Logs:
    """Return the log masses of the sum, by convolution in logarithms, so that nothing underflows at any order."""
    one = total = log_mass(variance)
    middle = np.arange(2 * REACH + 1)
    for _ in range(shares - 1):
        padded = np.full(4 * REACH + 1, -np.inf)
        padded[REACH:-REACH] = total
        shifted = padded[middle[:, None] + middle[::-1][None, :]]
        total = np.logaddexp.reduce(shifted + one[None, :], axis=1)
    return total


def divergence(order: float, masses: Logs, shift: int) -> float:
    p, q = masses[:-shift], masses[shift:]
    return float(np.logaddexp.reduce(order * p + (1 - order) * q)) / (order - 1)


CASES = [(0.5, 2), (0.5, 3), (0.5, 10), (0.6, 4), (0.8, 2), (1.0, 5), (2.0, 3)]


@pytest.mark.parametrize(("variance", "shares"), CASES)
def test_the_sum_is_within_half_tau_of_the_discrete_gaussian_of_summed_variance(variance: float, shares: int) -> None:
    close = slice(REACH - 25, REACH + 26)  # 25 deviations of one share; further out the window cuts convolutions off
    ratio = (log_sum(variance, shares) - log_mass(shares * variance))[close]
    assert np.abs(ratio).max() <= discrete_gaussian.tau(variance, shares) / 2 + 1e-12
    if variance == 0.5:
        assert np.abs(ratio).max() > 0.05 * discrete_gaussian.tau(variance, shares) / 2  # and the bound is not empty


@pytest.mark.parametrize(("variance", "shares"), CASES)
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_bound_lies_above_the_true_divergence(variance: float, shares: int, shift: int) -> None:
    masses = log_sum(variance, shares)
    bounds = discrete_gaussian.rdp_bound(ORDERS, variance, shares, l2=float(shift), dimension=1)
    for order, bound in zip(ORDERS, bounds.tolist(), strict=True):
        assert divergence(order, masses, shift) <= bound * (1 + 1e-9)


@pytest.mark.parametrize(("shares", "order"), [(2, 3.0), (2, 1.1), (10, 2.0)])
def test_the_gaussian_of_summed_variance_would_promise_too_much(shares: int, order: float) -> None:
    """Shares of σ² = ½ and a shift of 1: the true divergence is above α/(2·n/2), by a part in a thousand."""
    true = divergence(order, log_sum(0.5, shares), 1)
    assert true > 1.001 * order / shares
    noise = DistributedDiscreteGaussianNoise(variance=0.5, shares=shares, l2_sensitivity=1.0, dimension=1)
    assert rdp.curve(noise, np.array([order]))[0] >= true


def test_tau_by_hand() -> None:
    # three shares of σ² = 1: 10·(e^(−π²) + e^(−4π²/3))
    assert discrete_gaussian.tau(1.0, 3) == pytest.approx(
        10 * (math.exp(-(math.pi**2)) + math.exp(-4 * math.pi**2 / 3))
    )
    assert discrete_gaussian.tau(1.0, 1) == 0.0
    assert discrete_gaussian.tau(0.49, 2) == math.inf
    assert discrete_gaussian.tau(0.49, 1) == 0.0


def test_tau_of_very_many_shares_is_not_below_its_sum() -> None:
    k = np.arange(1.0, 300_000.0)
    exact = 10 * float(np.exp(-2 * math.pi**2 * 0.6 * k / (k + 1)).sum())
    assert exact <= discrete_gaussian.tau(0.6, 300_000) <= exact * 1.002
    assert math.isfinite(discrete_gaussian.tau(0.6, 10**12))


def test_the_bound_by_hand() -> None:
    """σ² = 1, 4 shares, sensitivity 6 in 9 coordinates: e = 3. τ is small, so the path (e + 3τ)² is not the least."""
    tau = discrete_gaussian.tau(1.0, 4)
    assert discrete_gaussian.rdp_bound([2.0], 1.0, 4, 6.0, 9).tolist() == pytest.approx([9 + 9 * tau], rel=1e-12)
    # one unit in one of many coordinates: e = ½, and the path is shorter at order 2
    assert discrete_gaussian.rdp_bound([2.0], 1.0, 4, 1.0, 10**9).tolist() == pytest.approx([0.25 + tau])
    assert discrete_gaussian.rdp_bound([1.5], 1.0, 4, 1.0, 10**9).tolist() == pytest.approx([0.75 * (0.5 + tau) ** 2])
    # shares below ½ have no τ, and one share alone is what is left
    assert discrete_gaussian.rdp_bound([2.0], 0.4, 10, 1.0, 5).tolist() == pytest.approx([2.5])


def test_one_share_is_the_discrete_gaussian() -> None:
    alone = DistributedDiscreteGaussianNoise(variance=25.0, shares=1, l2_sensitivity=5.0, dimension=100)
    whole = DiscreteGaussianNoise(variance=25.0, l2_sensitivity=5.0)
    for relation in ("add_or_remove", "replace"):
        assert rdp.epsilon(alone, 1e-5, relation) == pytest.approx(rdp.epsilon(whole, 1e-5, relation), rel=1e-12)


@given(
    variance=st.floats(min_value=0.1, max_value=30),
    shares=st.integers(min_value=1, max_value=1000),
    l2=st.floats(min_value=1, max_value=100),
    dimension=st.integers(min_value=1, max_value=10**7),
)
def test_it_is_never_better_than_summed_variance_nor_worse_than_one_share(
    variance: float, shares: int, l2: float, dimension: int
) -> None:
    orders = np.array([1.5, 2.0, 8.0, 64.0])
    found = discrete_gaussian.rdp_bound(orders, variance, shares, l2, dimension)
    assert (found >= orders * l2**2 / (2 * shares * variance) * (1 - 1e-12)).all()
    assert (found <= orders * l2**2 / (2 * variance) * (1 + 1e-12)).all()


NOISE = DistributedDiscreteGaussianNoise(variance=100.0, shares=10, l2_sensitivity=20.0, dimension=26_010)
SUMMED = GaussianNoise(noise_multiplier=math.sqrt(1000.0) / 20.0)


@pytest.mark.parametrize(
    ("event", "gaussian"),
    [
        (NOISE, SUMMED),
        (
            Repeated(count=50, event=PoissonSampled(sampling_rate=0.1, event=NOISE)),
            Repeated(count=50, event=PoissonSampled(sampling_rate=0.1, event=SUMMED)),
        ),
    ],
    ids=["once", "sampled"],
)
def test_with_shares_of_some_size_the_price_is_that_of_a_gaussian(event: Event, gaussian: Event) -> None:
    orders = np.arange(2.0, 60.0)
    assert rdp.epsilon(event, 1e-5, orders=orders) == pytest.approx(
        rdp.epsilon(gaussian, 1e-5, orders=orders), rel=1e-9
    )
    found, theirs = accountant.account_with_second_engine(event, 1e-5)
    same_variance = pld.epsilon(gaussian, 1e-5)
    assert found.certified_by == "pld"
    assert same_variance < found.epsilon < 1.001 * same_variance
    assert theirs.epsilon == pytest.approx(found.epsilon, rel=1e-3)


def test_small_shares_cost_more_when_sampled_too() -> None:
    small = DistributedDiscreteGaussianNoise(variance=0.6, shares=100, l2_sensitivity=5.0, dimension=1000)
    summed = GaussianNoise(noise_multiplier=math.sqrt(60) / 5)
    orders = np.arange(2.0, 30.0)
    for rate in (1.0, 0.1):
        ours, theirs = (PoissonSampled(sampling_rate=rate, event=noise) for noise in (small, summed))
        assert (rdp.curve(ours, orders) > 1.01 * rdp.curve(theirs, orders)).all()


def test_a_sampled_sum_costs_no_less_than_its_true_divergence() -> None:
    """One coordinate, both directions of (1 − q)Q + qP against Q, at whole orders, by direct summation."""
    event = PoissonSampled(
        sampling_rate=0.2,
        event=DistributedDiscreteGaussianNoise(variance=0.7, shares=3, l2_sensitivity=2.0, dimension=1),
    )
    masses = log_sum(0.7, 3)
    p, q = masses[:-2], masses[2:]
    mixture = np.logaddexp(math.log(0.8) + q, math.log(0.2) + p)
    for order in (2.0, 3.0, 8.0):
        bound = float(rdp.curve(event, np.array([order]))[0])
        for one, other in ((mixture, q), (q, mixture)):
            assert float(np.logaddexp.reduce(order * one + (1 - order) * other)) / (order - 1) <= bound


def test_replacing_and_groups_double_the_sensitivity_before_tau_is_added() -> None:
    doubled = DistributedDiscreteGaussianNoise(variance=100.0, shares=10, l2_sensitivity=40.0, dimension=26_010)
    assert scale_sensitivity(NOISE, 2.0) == group_event(NOISE, 2) == doubled
    assert rdp.epsilon(NOISE, 1e-5, "replace") == rdp.epsilon(doubled, 1e-5)
    sampled = SampledWithoutReplacement(cohort=9, population=10, event=NOISE)
    assert rdp.epsilon(sampled, 1e-5, "replace") <= rdp.epsilon(doubled, 1e-5) * (1 + 1e-12)


def test_it_is_kept_and_said_as_it_is() -> None:
    assert from_plain(Event, to_plain(NOISE)) == NOISE
    assert describe_event(Repeated(count=3, event=NOISE)) == (
        "3 × 10 shares of discrete Gaussian noise of variance 100 each for L2 sensitivity 20"
    )


def test_no_pair_is_listed_and_no_other_library_has_it() -> None:
    with pytest.raises(Unsupported, match="No dominating pair is listed"):
        dominating_pair(NOISE, "add_or_remove")
    with pytest.raises(Unsupported, match="sums of discrete Gaussians"):
        dp_accounting_events.to_dp_accounting(NOISE)
