"""Definition 4.2 of Heikkilä 2025: which noises of a whole sum dominate the sum of their shares, by hockey-stick
divergences of exact masses in one coordinate.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.privacy import discrete_gaussian, gaussian, skellam

Masses = NDArray[np.float64]

REACH = 400
K = np.arange(-REACH, REACH + 1)
SENSITIVITY = 3  # one unit moves the integer sum by at most 3


def of_skellam(variance: float) -> Masses:
    return np.exp(skellam.log_pmf(K, variance))


def of_discrete_gaussian(variance: float) -> Masses:
    weights = np.exp(-K * K / (2 * variance))
    return np.asarray(weights / weights.sum())


def of_the_sum(share: Masses, shares: int) -> Masses:
    total = share
    for _ in range(shares - 1):
        total = np.convolve(total, share)[REACH : 3 * REACH + 1]
    return total


def worst(masses: Masses, alphas: Masses) -> Masses:
    """sup over neighbours of H_α = Σ max(0, P − αQ): over all integer shifts within the sensitivity, both ways."""
    found = np.zeros(len(alphas))
    for shift in range(1, SENSITIVITY + 1):
        p, q = masses[:-shift], masses[shift:]
        for one, other in ((p, q), (q, p)):
            found = np.maximum(found, np.maximum(one[None, :] - alphas[:, None] * other[None, :], 0.0).sum(axis=1))
    return found


def levels(masses: Masses) -> Masses:
    """α from 1 to e^6, and every likelihood ratio between them, where hockey sticks of the masses bend."""
    seen = masses[masses > 1e-250]
    ratios = np.concatenate([seen[:-shift] / seen[shift:] for shift in range(1, SENSITIVITY + 1)])
    return np.union1d(np.exp(np.linspace(0, 6, 121)), ratios[(ratios >= 1) & (ratios < math.exp(6))])


@pytest.mark.parametrize("shares", [2, 5, 10])
@pytest.mark.parametrize("variance", [2.0, 20.0])
def test_skellam_is_properly_sum_dominating_and_with_equality(variance: float, shares: int) -> None:
    """The sum of shares is Skellam noise of the whole variance itself: (8) holds as an equality, for every α ≥ 1; and
    each share alone is strictly worse wherever it reveals anything.
    """
    share, whole = of_skellam(variance / shares), of_skellam(variance)
    alphas = levels(whole)
    total, dominating, alone = (worst(each, alphas) for each in (of_the_sum(share, shares), whole, share))
    assert np.abs(total - dominating).max() < 1e-12
    told = alone > 1e-9
    assert told.sum() > 50
    assert (dominating[told] < alone[told]).all()


def test_discrete_gaussian_of_summed_variance_is_not_sum_dominating() -> None:
    """Two shares of σ² = ½: at some α the sum reveals more than N_Z(0, 1) does."""
    share = of_discrete_gaussian(0.5)
    alphas = levels(of_discrete_gaussian(1.0))
    excess = worst(of_the_sum(share, 2), alphas) - worst(of_discrete_gaussian(1.0), alphas)
    assert excess.max() > 1e-3


@pytest.mark.parametrize(("variance", "shares"), [(0.5, 2), (0.5, 10), (0.7, 5), (1.0, 3), (2.0, 10)])
def test_with_tau_the_discrete_gaussian_dominates_the_sum(variance: float, shares: int) -> None:
    """P − αQ ≤ e^(τ/2)·(W' − αe^(−τ)·W) for the discrete Gaussian W of summed variance, since the sum is within e^±τ/2
    of it: so H_α of the sum is at most e^(τ/2)·H of W at αe^(−τ).
    """
    tau = discrete_gaussian.tau(variance, shares)
    total, whole = of_the_sum(of_discrete_gaussian(variance), shares), of_discrete_gaussian(shares * variance)
    alphas = levels(whole)
    assert (worst(total, alphas) <= math.exp(tau / 2) * worst(whole, alphas * math.exp(-tau)) + 1e-12).all()


@pytest.mark.parametrize(("variance", "shares"), [(0.5, 10), (1.0, 3), (1.0, 10), (4.0, 2), (4.0, 10)])
def test_gaussian_noise_of_a_little_less_variance_is_properly_sum_dominating_for_discrete_gaussians(
    variance: float, shares: int
) -> None:
    """As the paper's footnote 5 has it, a mechanism can be found: here continuous noise of variance nσ² − ½. It tells
    at least as much as the sum at every α, and less than one share alone. (Of a discrete Gaussian with less variance
    this is not true: its hockey sticks bend elsewhere.)
    """
    share = of_discrete_gaussian(variance)
    total = of_the_sum(share, shares)
    alphas = np.union1d(levels(total), levels(share))
    mu = SENSITIVITY / math.sqrt(shares * variance - 0.5)
    dominating = np.array([gaussian.delta(mu, math.log(alpha)) for alpha in alphas])
    assert (worst(total, alphas) <= dominating + 1e-13).all()
    alone = worst(share, alphas)
    told = alone > 1e-9
    assert told.sum() > 50
    assert (dominating[told] < alone[told]).all()


def test_discrete_gaussian_of_less_variance_is_not_sum_dominating_either() -> None:
    """Ten shares of σ² = 1: with 1 % less variance than the sum N_Z tells less than it at some α, by 1 % of δ."""
    total, less = of_the_sum(of_discrete_gaussian(1.0), 10), of_discrete_gaussian(9.9)
    alphas = np.union1d(levels(total), levels(less))
    told, by_less = worst(total, alphas), worst(less, alphas)
    assert (told / by_less)[told > 1e-10].max() > 1.01
