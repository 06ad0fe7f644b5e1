"""Clopper and Pearson's bounds on a probability, from how often something happened in independent trials."""

import math
from collections.abc import Callable

STEPS = 200  # of a bisection, which ends when two doubles are next to each other
TERMS = 10_000  # of a continued fraction, at most


def lower_bound(count: int, trials: int, error: float) -> float:
    """Return the probability below which `count` or more of `trials` would happen with at most this probability.

    Guarantee: whatever the probability is, the bound exceeds it with a probability of at most `error`.
    """
    if count == 0:
        return 0.0
    return _bisect(lambda p: log_binomial_tail(count, trials, p) <= math.log(error))[0]


def upper_bound(count: int, trials: int, error: float) -> float:
    """Return the probability above which `count` or fewer of `trials` would happen with at most this probability.

    Guarantee: whatever the probability is, the bound is below it with a probability of at most `error`.
    """
    return 1.0 - lower_bound(trials - count, trials, error)


def log_binomial_tail(count: int, trials: int, probability: float) -> float:
    """Return log P[X ≥ count] for X binomial: the incomplete beta function I_p(count, trials − count + 1)."""
    if count <= 0 or probability >= 1:
        return 0.0
    if probability <= 0 or count > trials:
        return -math.inf
    a, b = float(count), float(trials - count + 1)
    head = a * math.log(probability) + b * math.log1p(-probability)
    head += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    if probability < (a + 1) / (a + b + 2):
        return head - math.log(a) + math.log(_continued_fraction(a, b, probability))
    other = head - math.log(b) + math.log(_continued_fraction(b, a, 1 - probability))
    return math.log1p(-min(1.0 - 1e-16, math.exp(other)))


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method (DLMF 8.17.22)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away_from_zero(1 + term * d, tiny)
            c = _away_from_zero(1 + term / c, tiny)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


def _bisect(is_below: Callable[[float], bool]) -> tuple[float, float]:
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high
