"""Quantiles of the normal distribution for whole arrays of tail probabilities, down to 1e-300."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.gaussian import DEEP, LOG_SQRT_TAU, TERMS

Array = NDArray[np.float64]
MOST_STEPS = 50  # of Newton's method, which takes about six

_erfc: Any = np.frompyfunc(math.erfc, 1, 1)


def upper_quantiles(log_probabilities: Array) -> Array:
    """Return the x at which log P[N(0, 1) > x] has each of these negative values, as `gaussian.upper_quantile` does."""
    is_lower_half = log_probabilities > -math.log(2)
    with np.errstate(divide="ignore"):
        tails = np.where(is_lower_half, np.log(-np.expm1(log_probabilities)), log_probabilities)
    x: Array = np.sqrt(-2 * tails) - 0.6  # near enough: log-survival is concave, so Newton's steps converge
    for _ in range(MOST_STEPS):
        mills = _mills(x)
        step = (np.log(mills) - x * x / 2 - LOG_SQRT_TAU - tails) * mills
        x = x + step
        if (np.abs(step) <= 1e-15 * np.maximum(1.0, x)).all():
            break
    return np.where(is_lower_half, -x, x)


def _mills(x: Array) -> Array:
    """Return Mills' ratio: the survival function over the density."""
    near = np.minimum(x, DEEP)
    rest = np.zeros_like(x)
    for n in range(TERMS, 0, -1):
        rest = n / (x + rest)
    by_fraction = 1 / (x + rest)
    by_erfc = _erfc(near / math.sqrt(2)).astype(np.float64) / 2 * np.exp(near * near / 2 + LOG_SQRT_TAU)
    return np.where(x > DEEP, by_fraction, by_erfc)
