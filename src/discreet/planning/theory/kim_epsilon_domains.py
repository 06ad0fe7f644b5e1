"""For which ε each of paper 001's bounds holds, all else alike."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from discreet.planning.theory.kim_noise_bounds import (
    FORMS,
    MIN_VARIANCE,
    Promise,
    find_root,
    max_deviation,
    min_epsilon,
    turning_point,
)

LEAST, MOST = 1e-9, 1e9  # of ε, where a crossing is looked for
STEPS = 2000  # of a grid in which a condition's change is looked for


class EpsilonDomain(NamedTuple):
    """For which ε a bound holds, all else alike; None where there is no such ε."""

    begins: float | None  # σ falls below 1/(16q)
    saturates: float | None  # σ² falls below 1, and stays 1
    refused: tuple[tuple[float, float], ...]  # between these, its condition on ε fails; from `begins` on


def epsilon_domain(name: str, promise: Promise) -> EpsilonDomain:
    """Where a bound's conditions hold, for every ε from 1e-9 to 1e9."""
    formula = next(iter(FORMS[name].values()))
    start = turning_point(promise) if name == "theorem1" else LEAST

    def crossing(variance: float) -> float | None:
        def excess(log_epsilon: float) -> float:
            return formula(promise.at(math.exp(log_epsilon))) - variance

        if excess(math.log(MOST)) >= 0:
            return None
        return start if excess(math.log(start)) <= 0 else math.exp(find_root(excess, math.log(start), math.log(MOST)))

    saturates, most = crossing(MIN_VARIANCE), max_deviation(promise)
    begins = crossing(most**2) if most > 1 else None
    if begins is None:
        return EpsilonDomain(None, saturates, ())

    def margin(log_epsilon: float) -> float:
        at = promise.at(math.exp(log_epsilon))
        return log_epsilon - math.log(min_epsilon(max(formula(at), MIN_VARIANCE), at))

    return EpsilonDomain(begins, saturates, _below_zero(margin, math.log(begins), math.log(MOST)))


def _below_zero(function: Callable[[float], float], low: float, high: float) -> tuple[tuple[float, float], ...]:
    """The stretches, as exponentials, in which the function is negative; those narrower than the grid are missed."""
    grid = np.linspace(low, high, STEPS).tolist()
    signs = [function(x) > 0 for x in grid]
    changes = [i for i in range(1, STEPS) if signs[i] != signs[i - 1]]
    ends = [math.exp(find_root(function, grid[i - 1], grid[i])) for i in changes]
    ends = ends if signs[0] else [math.exp(low), *ends]
    ends = ends if signs[-1] else [*ends, math.exp(high)]
    return tuple(zip(ends[::2], ends[1::2], strict=True))
