"""The dominating pair of random allocation: a unit joins one of t Gaussian sums, and nobody knows which.

In units of the noise the pair is P = (1/t)·Σ_i N(μ·e_i, I) against Q = N(0, I) (docs/notes/allocation.md). Under Q its
likelihood ratio is the mean of t independent ratios W = e^(μx − μ²/2), x ~ N(0, 1). Their sum is convolved on grids
that follow its mass.

Guarantee: a value between two points of a grid is split onto both so that its mass and its mean are kept. That spreads
the likelihood ratio, so every hockey-stick divergence, in both directions, can only grow; and only positive numbers are
added and multiplied, so that nothing cancels in the tails.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet.errors import Unsupported
from discreet.privacy import gaussian
from discreet.privacy.noise_pairs import Array, GaussianBase

LARGEST_SHIFT = 8.0  # beyond it Q's masses are too small for a double where P's are
FURTHEST = 28.0  # a tilt may select masses up to here, in deviations of Q; there are doubles up to 38
LOG_TAILS = np.array([gaussian.log_survival(score) for score in np.arange(0.0, 8.0, 0.07)])  # where grids have points
COARSE = 150  # points of a grid, evenly in the logarithm, wherever the others have none
PILOT_GROUP = 2  # so many points of a grid count as one where only the next grid is chosen


class Ratios(NamedTuple):
    """Values of a likelihood ratio (or of a sum of them), ascending, and their masses under Q."""

    values: Array
    masses: Array


@dataclass(frozen=True)
class AllocationBase:
    """The mean of t likelihood ratios of N(μ, 1) against N(0, 1). Unlike other bases, P and Q differ in kind."""

    bins: int
    mu: float
    top: float = math.inf

    @classmethod
    def for_noise(cls, bins: int, mu: float) -> "AllocationBase":
        """Return the base.

        Raises:
            Unsupported: The noise is too small for the grid.
        """
        if mu > LARGEST_SHIFT:
            raise Unsupported(
                "Random allocation with noise below an eighth of the sensitivity has no loss distribution here.",
                fix="It protects nobody; its Rényi bound says by how much.",
            )
        return cls(bins, mu)

    @property
    def max_tilt(self) -> float:
        return FURTHEST / self.mu - 1

    def nodes(self, edges: Array) -> tuple[Array, Array]:
        """Return losses and the logs of their masses under Q: atoms, whatever the edges are."""
        mean = mean_ratio(self.bins, self.mu)
        kept = mean.masses > 0
        return np.log(mean.values[kept]), np.log(mean.masses[kept])


@lru_cache(maxsize=64)
def mean_ratio(bins: int, mu: float) -> Ratios:
    """Return the mean of `bins` likelihood ratios, spread onto a grid: by doubling, as one computes a power."""
    one = _single_ratio(mu)
    total = one
    for digit in f"{bins:b}"[1:]:
        total = _add(total, total)
        if digit == "1":
            total = _add(total, one)
    return Ratios(total.values / bins, total.masses)


def _single_ratio(mu: float) -> Ratios:
    losses, log_q = GaussianBase(mu).nodes(np.empty(0))
    kept = log_q > -700
    values, masses = np.exp(losses[kept]), np.exp(log_q[kept])
    grid = _choose_grid(values, masses)
    losses, log_q = GaussianBase(mu).nodes(np.log(grid))  # no panel straddles a point of the grid
    kept = (losses >= math.log(grid[0])) & (losses <= math.log(grid[-1]))
    return _spread(np.exp(losses[kept]), np.exp(log_q[kept]), grid)


def _add(first: Ratios, second: Ratios) -> Ratios:
    """Return the sum of two independent ratios."""
    grid = _choose_grid(*_all_sums(_thin(first), _thin(second)))
    lowest, highest = first.values[0] + second.values[0], first.values[-1] + second.values[-1]
    return _spread(*_all_sums(first, second), np.unique(np.concatenate([grid, [lowest, highest]])))


def _all_sums(first: Ratios, second: Ratios) -> tuple[Array, Array]:
    return (
        np.add.outer(first.values, second.values).ravel(),
        np.multiply.outer(first.masses, second.masses).ravel(),
    )


def _thin(ratios: Ratios) -> Ratios:
    """Return few values that look like all of them: enough to choose a grid by, and nothing else."""
    starts = np.arange(0, ratios.values.size, PILOT_GROUP)
    masses = np.add.reduceat(ratios.masses, starts)
    return Ratios(ratios.values[starts], masses)


def _choose_grid(values: Array, masses: Array) -> Array:
    """Return points that are dense where Q or P has its mass, and reach from the least value to the largest."""
    order = np.argsort(values)
    ordered, under_q = values[order], masses[order]
    low, high = float(ordered[0]), float(ordered[-1])
    points = [np.geomspace(low, high, COARSE), np.array([low, high])]
    for weights in (under_q, under_q * ordered):
        for cumulated, along in ((np.cumsum(weights), ordered), (np.cumsum(weights[::-1]), ordered[::-1])):
            seen = cumulated > 0
            tails = LOG_TAILS + math.log(cumulated[-1])
            points.append(np.exp(np.interp(tails, np.log(cumulated[seen]), np.log(along[seen]))))
    grid = np.unique(np.concatenate(points))
    return np.asarray(grid[np.append(True, np.diff(grid) > 1e-13 * grid[1:])])


def _spread(values: Array, masses: Array, grid: Array) -> Ratios:
    """Split each value onto its two neighbours on the grid, keeping its mass and its mean."""
    values = np.clip(values, grid[0], grid[-1])
    index = np.clip(np.searchsorted(grid, values, side="right") - 1, 0, grid.size - 2)
    up = (values - grid[index]) / (grid[index + 1] - grid[index])
    upper = np.bincount(index + 1, masses * up, grid.size)
    lower = np.bincount(index, masses * (1 - up), grid.size)
    return Ratios(grid, np.asarray(upper + lower, dtype=np.float64))
