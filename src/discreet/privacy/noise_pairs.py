"""The dominating pair of one release without sampling, for Gaussian, Laplace and Skellam noise.

Continuous noise becomes atoms by Gauss–Legendre quadrature on panels that end wherever the caller's grid does. So all
sums are of positive numbers, and nothing cancels (unlike in differences of δ or of distribution functions).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Unsupported
from discreet.privacy import skellam
from discreet.privacy.events import GaussianNoise, LaplaceNoise, Noise, SkellamNoise

Array = NDArray[np.float64]

DEEPEST = 40.0  # standard deviations; a Gaussian's tail there is below the smallest double
LARGEST_SHIFT = 200.0  # of Gaussian or Laplace noise, in its own units; twice a hundredth, for replacements
LARGEST_SKELLAM, LARGEST_MOVE = 1e8, 1e5  # variance and shift; beyond them there are too many integers to list


class Base(Protocol):
    """The pair of one unsampled release: P with the unit, Q without it. It is symmetric in P and Q."""

    @property
    def top(self) -> float:
        """The largest privacy loss."""

    @property
    def max_tilt(self) -> float:
        """The largest tilt; weights e^(tilt·loss) beyond it select masses too small for a double."""

    def nodes(self, edges: Array) -> tuple[Array, Array]:
        """Return losses and the logs of their masses under Q. No panel straddles one of `edges`."""


def base_pair(noise: Noise, factor: float = 1.0) -> Base:
    """Return the dominating pair of one unsampled release, at `factor` times the sensitivity.

    Raises:
        Unsupported: No pair is proven for this noise, or the noise is too small for the grid.
    """
    match noise:
        case GaussianNoise() | LaplaceNoise() if factor / noise.noise_multiplier > LARGEST_SHIFT:
            raise Unsupported(
                "Noise below a hundredth of the sensitivity has no privacy-loss distribution here.",
                fix="It protects nobody; its Rényi bound says by how much.",
            )
        case GaussianNoise():
            return GaussianBase(factor / noise.noise_multiplier)
        case LaplaceNoise():
            return LaplaceBase(laplace_shift(noise, factor))
        case SkellamNoise() if moves_one_coordinate(noise, factor) and noise.variance <= LARGEST_SKELLAM:
            return SkellamBase(noise.variance, math.floor(factor * noise.l2_sensitivity))
        case _:
            raise Unsupported(
                f"No dominating pair is listed for this {noise.kind.replace('_', ' ')} noise.",
                fix="Its Rényi bound is what is certified.",
            )


def laplace_shift(noise: LaplaceNoise, factor: float) -> float:
    """Return the shift of the noise in units of its scale, rounded up to the next double unless it is exact."""
    shift = factor / noise.noise_multiplier
    exact = Fraction(factor) / Fraction(noise.noise_multiplier)
    return shift if Fraction(shift) >= exact else math.nextafter(shift, math.inf)


def moves_one_coordinate(noise: SkellamNoise, factor: float) -> bool:
    """Return whether an integer vector within the sensitivity moves only one coordinate, and not too far to list."""
    moved = factor * noise.l2_sensitivity
    return moved < math.sqrt(2) or (noise.dimension == 1 and moved <= LARGEST_MOVE)


@dataclass(frozen=True)
class GaussianBase:
    """N(μ, 1) against N(0, 1): the loss at x is μx − μ²/2.

    Where a group of `shifts` units is sampled, the means go up to shifts·μ, and so do the nodes. Panels that no edge
    divides are `panels_per_unit` to a standard deviation: of a step's mass they miss 1e-12 at 10, and n⁶ times less at
    10n, which matters once a million steps add up.
    """

    mu: float
    shifts: int = 1
    top: float = math.inf
    panels_per_unit: float = 10.0

    @property
    def max_tilt(self) -> float:
        return DEEPEST / (self.shifts * self.mu)

    def nodes(self, edges: Array) -> tuple[Array, Array]:
        inside = (edges + self.mu**2 / 2) / self.mu
        low, high = -DEEPEST, 1.5 * DEEPEST + self.shifts * self.mu
        # a sampled loss bends over a width of 1/μ
        rule = np.arange(low, high, 1 / self.panels_per_unit / max(1.0, self.mu / 2))
        x, log_weights = _panels(np.concatenate([rule, inside[(inside > low) & (inside < high)], [high]]))
        return self.mu * x - self.mu**2 / 2, log_weights - x * x / 2 - math.log(2 * math.pi) / 2


@dataclass(frozen=True)
class LaplaceBase:
    """Laplace noise of scale 1 around ε against around 0: the loss is ±ε outside [0, ε] and 2x − ε inside.

    For vectors of L1 sensitivity ε one coordinate is the worst: moving two coordinates by s and t is
    dominated by moving one by s + t (docs/notes/laplace.md).
    """

    epsilon: float
    max_tilt: float = 1e6

    @property
    def top(self) -> float:
        return self.epsilon

    def nodes(self, edges: Array) -> tuple[Array, Array]:
        inside = (edges + self.epsilon) / 2
        rule = np.linspace(0, self.epsilon, 2 + math.ceil(min(self.epsilon / 0.02, 2e4)))
        x, log_weights = _panels(np.concatenate([rule, inside[(inside > 0) & (inside < self.epsilon)]]))
        losses = np.concatenate([[-self.epsilon], 2 * x - self.epsilon, [self.epsilon]])
        return losses, np.concatenate([[0.0], log_weights - x, [-self.epsilon]]) - math.log(2)


@dataclass(frozen=True)
class SkellamBase:
    """Skellam noise around an integer shift against around 0, on one coordinate: atoms at the integers themselves."""

    variance: float
    shift: int
    top: float = math.inf

    @property
    def max_tilt(self) -> float:
        return DEEPEST * math.sqrt(self.variance) / self.shift

    def nodes(self, edges: Array) -> tuple[Array, Array]:
        reach = math.ceil(DEEPEST * math.sqrt(self.variance))
        while float(skellam.log_pmf(reach, self.variance)) > -745:  # the log of the smallest double
            reach *= 2
        k = np.arange(-reach, reach + 1 + self.shift, dtype=np.float64)
        log_q = skellam.log_pmf(k, self.variance)
        return skellam.log_pmf(k - self.shift, self.variance) - log_q, log_q


@dataclass(frozen=True)
class ResponseBase:
    """Randomised response of one category against another: the loss is ±ε where one of the two is named, else 0.

    With k categories, each of the others is named with probability 1/(e^ε + k − 1) on both sides. Exact.
    """

    epsilon: float
    categories: int
    max_tilt: float = 1e6

    @property
    def top(self) -> float:
        return self.epsilon

    def nodes(self, edges: Array) -> tuple[Array, Array]:
        log_other = -float(np.logaddexp(self.epsilon, math.log(self.categories - 1)))
        losses, log_q = [-self.epsilon, self.epsilon], [self.epsilon + log_other, log_other]
        if self.categories > 2:
            losses, log_q = [*losses, 0.0], [*log_q, math.log(self.categories - 2) + log_other]
        return np.array(losses), np.array(log_q)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


def _panels(ends: Array) -> tuple[Array, Array]:
    """Return three Gauss–Legendre nodes in each panel between consecutive `ends`, and their log weights."""
    ends = np.unique(ends)
    half = np.diff(ends) / 2
    middle = (ends[:-1] + ends[1:]) / 2
    x = middle[:, None] + half[:, None] * _NODES
    weights = half[:, None] * _WEIGHTS
    return x.ravel(), np.log(weights).ravel()


def log_expm1(x: Array) -> Array:
    """Return log(e^x − 1) for x ≥ 0; −∞ at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(x + np.log(-np.expm1(-x)))


def log_binomial(n: int, k: Array, rate: float) -> Array:
    """Return the logs of the chances that k of n join, each at this rate."""
    return log_choose(n, k) + k * math.log(rate) + (n - k) * math.log1p(-rate)


def log_choose(n: int, k: Array) -> Array:
    """Return the logs of the numbers of ways to choose k of n."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    chosen = k.astype(np.int64)
    return np.asarray(factorials[n] - factorials[chosen] - factorials[n - chosen])
