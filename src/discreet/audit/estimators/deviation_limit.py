"""An upper confidence limit of a normal distribution's deviation, and a test whether numbers look normal."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def upper_deviation(squares: float, degrees: int, error: float) -> float:
    """Return a number that a normal deviation exceeds with probability at most `error`.

    Args:
        squares: The sum of squared residuals; over σ² it has a χ² distribution.
        degrees: Its degrees of freedom.
        error: The probability.
    """
    return math.sqrt(squares / chi_square_quantile(degrees, error))


def chi_square_quantile(degrees: int, probability: float) -> float:
    """Return the x that a χ² variable falls below with this probability, up to 0.5; it is rounded down."""
    low, high = 0.0, float(degrees)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _lower_gamma(degrees / 2, middle / 2) <= probability else (low, middle)
    return low


def normality_p_value(values: Array) -> float:
    """Return the p-value of Jarque and Bera's test, by skewness and kurtosis; its χ² is an approximation.

    1 for fewer than eight values, of which neither says anything.
    """
    if len(values) < 8 or not (deviation := float(np.std(values))):
        return 1.0
    standard = (values - values.mean()) / deviation
    skewness, kurtosis = float((standard**3).mean()), float((standard**4).mean()) - 3
    return math.exp(-len(values) * (skewness**2 / 6 + kurtosis**2 / 24) / 2)


def _lower_gamma(shape: float, x: float) -> float:
    """Return the regularised lower incomplete gamma function by its series, which converges for x ≤ shape + 1."""
    if x <= 0:
        return 0.0
    term = total = 1.0
    count = shape
    while term > 1e-17 * total:
        count += 1
        term *= x / count
        total += term
    return min(1.0, total * math.exp(shape * math.log(x) - x - math.lgamma(shape + 1)))
