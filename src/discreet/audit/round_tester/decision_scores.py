"""Numbers that tell two samples apart, learned from a part of the samples: high values speak for the first one."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
BINS = 48
PAIR_BINS = 20
FEW_VALUES = 256  # a coordinate with at most so many values is compared value by value, such as points of a lattice
BEST_AXES = 4  # of which all pairs are tried
STEPS = 12  # of Newton's method
RIDGE = 1e-3


class Score(NamedTuple):
    """A score and what it is called."""

    name: str
    function: Callable[[Array], Array]


class Axis(NamedTuple):
    """A number of each observation."""

    name: str
    function: Callable[[Array], Array]


def learn_scores(first: Array, second: Array, *, thorough: bool = True) -> list[Score]:
    """Learn scores from two samples of equal width, one observation in a row.

    Half-spaces along coordinates and along the best linear direction; likelihood ratios of two normal distributions, of
    histograms of one and of two numbers, and of logistic regression with squares; the distance from the middle. Without
    `thorough`, no half-spaces and no regression, which histograms come close to.
    """
    both = np.concatenate([first, second])
    axes = _axes(first, second, both)
    ratios = {axis.name: _histogram_ratio([axis], first, second, both, BINS) for axis in axes}
    best = sorted(axes, key=lambda axis: -_separation(ratios[axis.name].function, first, second))[:BEST_AXES]
    scores = [*ratios.values(), _normal_ratio(first, second)]
    scores += [
        _histogram_ratio([left, right], first, second, both, PAIR_BINS)
        for place, left in enumerate(best)
        for right in best[place + 1 :]
    ]
    if not thorough:
        return scores
    return [Score(f"half-space: {axis.name}", axis.function) for axis in axes] + [
        *scores,
        _logistic(first, second, both),
    ]


def _axes(first: Array, second: Array, both: Array) -> list[Axis]:
    varied = np.flatnonzero(both.std(axis=0) > 0)
    axes = [Axis(f"coordinate {column}", itemgetter((slice(None), column))) for column in varied]
    direction = np.linalg.solve(_covariance(first) + _covariance(second), first.mean(axis=0) - second.mean(axis=0))
    middle, whitening = both.mean(axis=0), np.linalg.inv(np.linalg.cholesky(_covariance(both)))
    axes.append(Axis("best linear direction", lambda x: x @ direction))
    axes.append(Axis("distance from the middle", lambda x: np.linalg.norm((x - middle) @ whitening.T, axis=1)))
    return axes


def _covariance(sample: Array) -> Array:
    """Return the covariance, with a little added to directions without variance."""
    found = np.atleast_2d(np.cov(sample, rowvar=False))
    floor = 1e-9 * max(float(np.trace(found)), 1e-12)
    covariance: Array = found + floor * np.eye(len(found))
    return covariance


def _separation(score: Callable[[Array], Array], first: Array, second: Array) -> float:
    """Return how often the score's sign is right, beyond chance."""
    return float((score(first) > 0).mean() - (score(second) > 0).mean())


def _histogram_ratio(axes: list[Axis], first: Array, second: Array, both: Array, bins: int) -> Score:
    """Return the logarithm of the ratio of counts in the cells of a grid."""
    edges = [_edges(axis.function(both), bins) for axis in axes]
    sizes = [len(each) + 1 for each in edges]

    def cells(x: Array) -> npt.NDArray[np.int64]:
        places = [np.digitize(axis.function(x), edge) for axis, edge in zip(axes, edges, strict=True)]
        return np.ravel_multi_index(places, sizes).astype(np.int64)

    counts = [np.bincount(cells(sample), minlength=int(np.prod(sizes))) for sample in (first, second)]
    ratio = np.log((counts[0] + 1.0) / (counts[1] + 1.0))
    return Score(f"histogram: {' and '.join(axis.name for axis in axes)}", lambda x: ratio[cells(x)])


def _edges(values: Array, bins: int) -> Array:
    """Return where a histogram divides values: between all of them if they are few, else at quantiles."""
    distinct = np.unique(values)
    if len(distinct) <= FEW_VALUES:
        between: Array = (distinct[1:] + distinct[:-1]) / 2
        return between
    tails = np.array([0.001, 0.003, 0.01])
    levels = np.unique(np.concatenate([tails, np.linspace(0, 1, bins + 1)[1:-1], 1 - tails]))
    return np.unique(np.quantile(values, levels))


def _normal_ratio(first: Array, second: Array) -> Score:
    def log_density(sample: Array) -> Callable[[Array], Array]:
        mean, covariance = sample.mean(axis=0), _covariance(sample)
        inverse, log_size = np.linalg.inv(covariance), np.linalg.slogdet(covariance)[1]
        return lambda x: -0.5 * (np.einsum("ni,ij,nj->n", x - mean, inverse, x - mean) + log_size)

    one, other = log_density(first), log_density(second)
    return Score("normal likelihood ratio", lambda x: one(x) - other(x))


def _logistic(first: Array, second: Array, both: Array) -> Score:
    """Return logistic regression on the numbers, their squares and products, by Newton's method."""
    mean, spread = both.mean(axis=0), both.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    rows, columns = np.triu_indices(both.shape[1])

    def features(x: Array) -> Array:
        z = np.clip((x - mean) / spread, -8, 8)
        return np.concatenate([np.ones((len(z), 1)), z, z[:, rows] * z[:, columns]], axis=1)

    table = features(both)
    labels = np.repeat([1.0, 0.0], [len(first), len(second)])
    weights = np.zeros(table.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        slope = table.T @ (labels - chance) - RIDGE * weights
        curvature = (table * (chance * (1 - chance))[:, None]).T @ table
        curvature += (RIDGE + 1e-9 * len(table)) * np.eye(len(weights))
        weights = weights + np.linalg.solve(curvature, slope)
    return Score("logistic regression", lambda x: features(x) @ weights)
