"""The Skellam mechanism: integer noise for secure sums, and its proven privacy.

All numbers are in lattice units unless a docstring says otherwise: a vector of norm C scaled by s has norm sC, and the
variance is that of the noise in the whole sum. Replacing a unit moves the sum by twice the sensitivities given here.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.privacy.gaussian import LOG_SQRT_TAU

Floats = NDArray[np.float64]

RETRY = math.exp(-0.5)  # conditional rounding's β in the papers: √(2 ln 1/β) is then 1
DEBYE_FROM = 600.0  # √(k² + v²) from which four terms of Debye's expansion leave an error below 1e-14
# U_j(p)/p^j for j = 1…4 as polynomials in p², highest power first (Abramowitz & Stegun, 9.3.9), and their divisors.
DEBYE = (
    ((-5.0, 3.0), 24.0),
    ((385.0, -462.0, 81.0), 1152.0),
    ((-425425.0, 765765.0, -369603.0, 30375.0), 414720.0),
    ((185910725.0, -446185740.0, 349922430.0, -94121676.0, 4465125.0), 39813120.0),
)


def l2_after_rounding(norm: float, dimension: int, retry: float = RETRY) -> float:
    """Bound the L2 norm of a vector of `norm` after stochastic rounding (Kairouz, Liu & Steinke, 2021, Thm 1).

    Guarantee: holds for every vector that conditional rounding with β = `retry` lets through; with β = 0 for every
    rounded vector.
    """
    always = norm + math.sqrt(dimension)
    if retry == 0:
        return always
    likely = math.sqrt(2 * math.log(1 / retry)) * (norm + math.sqrt(dimension) / 2)
    return min(always, math.sqrt(norm * norm + dimension / 4 + likely))


def l1_of_integers(l2: float, dimension: int) -> float:
    """Bound the L1 norm of integer vectors of this L2 norm, by Cauchy–Schwarz and |k| ≤ k²."""
    return l2 * min(math.sqrt(dimension), l2)


def scale_for_bits(
    bits: int, clip_norm: float, vectors: int, dimension: int, share_deviation: float, deviations: float = 3.0
) -> float:
    """Return the scale at which a sum of `vectors` rounded vectors, each with its share of noise, fits 2^bits.

    `share_deviation` is one share's noise before scaling. Fitting means that `deviations` standard deviations of a
    coordinate stay inside; a heuristic, since it takes the sum to be spread evenly over coordinates. 0: nothing fits.
    """
    room = 4.0**bits - vectors * deviations**2
    spread = (clip_norm * vectors) ** 2 / dimension + vectors * share_deviation**2
    return math.sqrt(max(room, 0.0) / spread) / (2 * deviations)


def rdp_bound(orders: Floats | Sequence[float], variance: float, l1: float, l2: float) -> Floats:
    """Return Rényi divergence bounds of Skellam noise, one for each order (Agarwal, Kairouz & Liu, 2021, Thm 3.5).

    Guarantee: an upper bound, in any direction with these L1 and L2 sensitivities, at whole orders from 2;
    infinity at every other order, where nothing was proved.
    """
    alpha = np.asarray(orders, dtype=np.float64)
    gaussian = alpha * (l2 * l2 / (2 * variance))
    excess = np.minimum(
        (2 * alpha - 1) * (l2 / (2 * variance)) ** 2 + 3 * l1 / (2 * variance) / variance, 3 * l1 / (2 * variance)
    )
    proved = (alpha >= 2) & (alpha == np.floor(alpha)) & np.isfinite(alpha)
    return np.where(proved, gaussian + excess, np.inf)


def log_pmf(k: ArrayLike, variance: float) -> Floats:
    """Return log P[X = k] of Skellam noise, −v + log I_|k|(v), within about 1e-13 or a relative 1e-14.

    It never underflows.
    """
    order = np.abs(np.asarray(k, dtype=np.float64))
    result = np.empty_like(order)
    large = np.hypot(order, variance) >= DEBYE_FROM
    result[large] = _log_pmf_debye(order[large], variance)
    if not large.all():
        result[~large] = _log_pmf_series(order[~large], variance)
    return result


def _exponent(k: Floats, variance: float) -> Floats:
    """Return √(k²+v²) − v − k·asinh(k/v), the exponential part of log P[X = k], without cancellation."""
    return np.asarray(k * k / (np.hypot(k, variance) + variance) - k * np.arcsinh(k / variance))


def _log_pmf_debye(k: Floats, variance: float) -> Floats:
    """Return log P[X = k] by Debye's expansion in w = √(k²+v²), uniform in k (Abramowitz & Stegun, 9.7.7)."""
    w = np.hypot(k, variance)
    square = (k / w) ** 2
    terms = sum(np.polyval(coefficients, square) / divisor / w**j for j, (coefficients, divisor) in enumerate(DEBYE, 1))
    return np.asarray(_exponent(k, variance) - LOG_SQRT_TAU - np.log(w) / 2 + np.log1p(terms))


def _log_pmf_series(k: Floats, variance: float) -> Floats:
    """Return log P[X = k] by the power series of I_k(v), whose terms are positive and at most e^600."""
    term = np.ones_like(k)
    total = np.ones_like(k)
    for j in range(1, int(2 * variance) + 60):
        term = term * (variance * variance / 4 / (j * (j + k)))
        total += term
    factorials = np.array([math.lgamma(order + 1) for order in k.ravel()]).reshape(k.shape)
    return np.asarray(k * math.log(variance / 2) - factorials + np.log(total) - variance)
