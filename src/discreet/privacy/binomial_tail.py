"""Tail probabilities of binomial numbers, from above, to full relative precision for up to 10^12 coins."""

import math
from functools import lru_cache

MARGIN = 1e-9  # relative: what the sums below lose, and far more
CONVERGED = 1e-15
TINY = 1e-300  # keeps the continued fraction from dividing by zero; and the least probability that is returned
MOST_TERMS = 10**7


@lru_cache(maxsize=1024)
def binomial_tail(least: int, trials: int, rate: float) -> float:
    """Return P[at least `least` of `trials` coins of this rate show heads].

    Guarantee: never below the true probability, and at most 1e-300 or a relative 2e-9 above it.

    Example:
        >>> round(binomial_tail(2, 3, 0.5), 6)  # 4 of 8
        0.5
    """
    if least <= 0:
        return 1.0
    if least > trials:
        return 0.0
    if rate == 1:
        return 1.0
    # The tail is the regularised incomplete beta function I_q(k, n − k + 1).
    a, b = least, trials - least + 1
    value = _lower_beta(a, b, rate) if rate <= (a + 1) / (a + b + 2) else 1 - _lower_beta(b, a, 1 - rate)
    return min(1.0, max(value * (1 + MARGIN), TINY))


def _lower_beta(a: int, b: int, x: float) -> float:
    """Return I_x(a, b) by its continued fraction, in Lentz's way; it converges fast for x below its mean."""
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > TINY else TINY)
    c, fraction = 1.0, d
    for m in range(1, MOST_TERMS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + numerator * d
            c = 1 + numerator / c
            d = 1 / (d if abs(d) > TINY else TINY)
            c = c if abs(c) > TINY else TINY
            fraction *= d * c
        if abs(d * c - 1) < CONVERGED:
            break
    return math.exp(_log_probability(a, a + b, x)) * b / (a + b) * fraction


def _log_probability(k: int, n: int, rate: float) -> float:
    """Return the log of P[exactly k of n coins show heads], 0 < k < n (Loader 2000: no large numbers cancel)."""
    return (
        _stirling_error(n)
        - _stirling_error(k)
        - _stirling_error(n - k)
        - _deviance(k, n * rate)
        - _deviance(n - k, n * (1 - rate))
        + 0.5 * math.log(n / (2 * math.pi * k * (n - k)))
    )


def _stirling_error(n: int) -> float:
    """Return log n! − log(√(2πn)·(n/e)^n)."""
    if n < 16:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2 * math.pi)
    square = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / n


def _deviance(x: float, mean: float) -> float:
    """Return x·log(x/mean) + mean − x, without cancellation where x is near the mean."""
    if abs(x - mean) > 0.1 * (x + mean):
        return x * math.log(x / mean) + mean - x
    ratio = (x - mean) / (x + mean)
    total, term, square = (x - mean) * ratio, 2 * x * ratio, ratio * ratio
    for j in range(1, 1000):
        term *= square
        before, total = total, total + term / (2 * j + 1)
        if total == before:
            break
    return total
