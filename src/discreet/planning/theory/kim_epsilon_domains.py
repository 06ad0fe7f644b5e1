"""Kim, Günlü & Schaefer 2021: for which ε each of its bounds holds, with all other numbers fixed.

The paper states Theorem 1's conditions and leaves open where they hold. Here they are solved for ε.
"""

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

LEAST, MOST = 1e-9, 1e9  # the ε between which a crossing is searched
STEPS = 2000  # of the grid that is searched for a change of a condition


class EpsilonDomain(NamedTuple):
    """For which ε a bound holds; the fields are JSON keys.

    Attributes:
        begins: The ε at which σ falls below 1/(16q); None if it never does.
        saturates: The ε at which σ² falls below 1, and stays 1; None if it never does.
        refused: The intervals, from `begins` on, in which the condition on ε fails.
    """

    begins: float | None
    saturates: float | None
    refused: tuple[tuple[float, float], ...]


def epsilon_domain(name: str, promise: Promise) -> EpsilonDomain:
    """Return where a bound's conditions hold, for every ε from 1e-9 to 1e9."""
    formula = next(iter(FORMS[name].values()))
    start = turning_point(promise) if name == "theorem1" else LEAST

    def find_crossing(variance: float) -> float | None:
        def excess(log_epsilon: float) -> float:
            return formula(promise.with_epsilon(math.exp(log_epsilon))) - variance

        if excess(math.log(MOST)) >= 0:
            return None
        return start if excess(math.log(start)) <= 0 else math.exp(find_root(excess, math.log(start), math.log(MOST)))

    saturates, most = find_crossing(MIN_VARIANCE), max_deviation(promise)
    begins = find_crossing(most**2) if most > 1 else None
    if begins is None:
        return EpsilonDomain(None, saturates, ())

    def margin(log_epsilon: float) -> float:
        moved = promise.with_epsilon(math.exp(log_epsilon))
        return log_epsilon - math.log(min_epsilon(max(formula(moved), MIN_VARIANCE), moved))

    return EpsilonDomain(begins, saturates, _negative_intervals(margin, math.log(begins), math.log(MOST)))


def _negative_intervals(function: Callable[[float], float], low: float, high: float) -> tuple[tuple[float, float], ...]:
    """Return the intervals, as exponentials, where the function is negative; the grid misses narrower ones."""
    grid = np.linspace(low, high, STEPS).tolist()
    signs = [function(x) > 0 for x in grid]
    changes = [i for i in range(1, STEPS) if signs[i] != signs[i - 1]]
    ends = [math.exp(find_root(function, grid[i - 1], grid[i])) for i in changes]
    ends = ends if signs[0] else [math.exp(low), *ends]
    ends = ends if signs[-1] else [*ends, math.exp(high)]
    return tuple(zip(ends[::2], ends[1::2], strict=True))
