"""The Skellam mechanism: integer noise for secure sums, and its proven privacy.

All numbers are in lattice units unless a docstring says otherwise: a vector of norm C scaled by s has norm sC, and the
variance is that of the noise in the whole sum. Replacing a unit moves the sum by twice the sensitivities given here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.privacy.events import GaussianNoise
from discreet.privacy.gaussian import LOG_SQRT_TAU
from discreet.privacy.normal_quantiles import upper_quantiles

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
TABLE_BELOW = 1e5  # below this variance every threshold is computed; above it, blocks of them
CHECKED_TO = -700.0  # log-probability
WIDTH = 0.005  # of a block, in standard deviations
ROUNDING = 2e-12  # what floating point may add to a margin: logarithms of size 700, a few operations
LARGEST = 1e24  # thresholds stop being exact integers in float64 soon after


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


@dataclass(frozen=True)
class Certificate:
    """Gaussian noise that Skellam noise was found to be no worse than, by a check of this very plan.

    `noise` is None where the check did not pass, and `reason` says why. `margin` is the least log-ratio by which a
    threshold's probability stayed below what the Gaussian allows; `thresholds` is how many points were computed.
    `proof` means that all integer shifts in all directions are covered, so that only floating-point rounding (which
    `margin` exceeds) stands between the check and a proof.
    """

    noise: GaussianNoise | None
    margin: float
    thresholds: int
    proof: bool
    reason: str


def certificate(variance: float, l2_sensitivity: float) -> Certificate:
    """Offer N(0, v − max(1/2, v·5e-10)) in place of Skellam noise of variance v, after checking that it is dominated.

    Guarantee: where `noise` is given, it dominates this Skellam mechanism in every direction, with or without Poisson
    sampling and composed with anything, up to rounding and to events of probability below 1e-300 a coordinate.

    The argument. Let S(k) = P[X ≥ k], g(k) = −Φ⁻¹(S(k)). Skellam noise is log-concave, so the best tests between shifts
    0 and s are thresholds: the trade-off curve has the vertices (S(k), S(k−s)), and stays below the Gaussian's, which
    is concave, when g(k) − g(k−s) ≤ sμ for all k, with μ² = 1/(offered variance). This telescopes: s = 1 settles all s.
    By symmetry (g(1−k) = −g(k)) only k ≥ 1 is left. A pair whose curve is below another's is a post-processing of it
    (Blackwell), so coordinates multiply and μ adds in squares: any integer vector of norm Δ is covered by Δμ.
    """
    if not 0.5 < variance <= LARGEST:
        return _no_certificate(f"variance {variance:g} is outside (0.5, {LARGEST:g}], where the check runs")
    offered = variance - max(0.5, 5e-10 * variance)
    if not math.sqrt(offered) / l2_sensitivity >= 0.01:
        return _no_certificate("noise below a hundredth of the sensitivity protects nobody")
    margin, thresholds = _least_margin(variance, 1 / math.sqrt(offered))
    if not margin > ROUNDING:
        return _no_certificate(
            f"Gaussian noise of variance {offered:g} did not dominate variance {variance:g}: {margin:.3g}"
        )
    noise = GaussianNoise(noise_multiplier=math.sqrt(offered) / l2_sensitivity)
    return Certificate(
        noise, margin, thresholds, proof=True, reason="every threshold checked; a shift of 1 settles all"
    )


def _no_certificate(reason: str) -> Certificate:
    return Certificate(None, -math.inf, 0, proof=False, reason=reason)


@lru_cache(maxsize=256)
def _least_margin(variance: float, mu: float) -> tuple[float, int]:
    """Return by how much g's steps stay below μ wherever P[X ≥ k] is above 1e-300, relative to μ, and their number."""
    return _margin_by_table(variance, mu) if variance < TABLE_BELOW else _margin_by_blocks(variance, mu)


def _margin_by_table(variance: float, mu: float) -> tuple[float, int]:
    log_survival = _log_tail_sums(log_pmf(np.arange(_reach(variance)), variance))
    g = upper_quantiles(log_survival[log_survival > CHECKED_TO])
    return float(1 - np.diff(g).max() / mu), len(g)


def _margin_by_blocks(variance: float, mu: float) -> tuple[float, int]:
    """Return the least log-ratio of Φ̄(x) − Φ̄(x+μ) to P[X = k], x = g(k); if it is positive, g(k+1) ≤ g(k) + μ.

    In a block that starts at a, induction gives x ≤ g(a) + iμ at k = a + i; Jensen gives
    Φ̄(x) − Φ̄(x+μ) ≥ μ φ(x + μ/2) exp(−μ²/24), which falls in x; and Amos (1974) gives
    log P[X = k+1] − log P[X = k] ≤ −asinh((k + ½)/v). The log-ratio is then concave in i, since μ² ≥ 1/v,
    so the two ends of the block decide.
    """
    length = math.floor(WIDTH * math.sqrt(variance))
    starts = np.arange(0.0, _reach(variance), length)
    log_mass = log_pmf(starts, variance)
    log_survival = _integrate_tails(starts, length, log_mass, variance)
    g = upper_quantiles(log_survival)
    allowed = math.log(mu) - LOG_SQRT_TAU - mu * mu / 24 - log_mass
    first = allowed - (g + mu / 2) ** 2 / 2
    decay = _exponent(starts, variance) - _exponent(starts + length, variance)  # ≤ Σ asinh over the block: concave
    last = allowed - (g + (length + 0.5) * mu) ** 2 / 2 + decay
    centre = math.log(math.erf(mu / math.sqrt(8))) - log_mass[0]  # g(0) ≥ −μ/2: from there on the bound falls in x
    checked = log_survival > CHECKED_TO
    return float(min(centre, first[checked].min(), last[checked].min())), int(checked.sum())


def _reach(variance: float) -> float:
    """Return a k beyond which the mass is negligible at `CHECKED_TO`."""
    k = 40 * math.sqrt(variance)
    while float(_exponent(np.array(k), variance)) > CHECKED_TO - 60:
        k *= 1.2
    return math.ceil(k)


def _integrate_tails(starts: Floats, length: float, log_mass: Floats, variance: float) -> Floats:
    """Return log P[X ≥ k] at each start, by Euler–Maclaurin's midpoint rule.

    It is the integral of the mass from k − ½, plus slope/24 there.
    """
    nodes, weights = np.polynomial.legendre.leggauss(8)
    points = starts[:, None] - 0.5 + length * (nodes + 1) / 2
    blocks = np.exp(log_pmf(points, variance) - log_mass[:, None]) @ weights * length / 2
    integral = _log_tail_sums(np.log(blocks) + log_mass)
    edge = starts - 0.5
    slope = -np.arcsinh(edge / variance) * np.exp(log_pmf(edge, variance) - integral)
    return np.asarray(integral + np.log1p(slope / 24))


def _log_tail_sums(logs: Floats) -> Floats:
    """Return the logarithm of the sum of each term and all that follow it."""
    return np.asarray(np.logaddexp.accumulate(logs[::-1])[::-1])


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
