"""How often an attack can detect a unit, from Rényi divergences: what it says is one bit, which has no larger ones."""

import math

import numpy as np

from discreet.privacy.noise_pairs import Array

ROUNDING = 1e-13  # what floating point may take from a logarithm of a sum, and relatively from a few operations
LARGEST_LOSS = 300.0  # above it hyperbolic functions overflow


def largest_true_positive_rate(orders: Array, values: Array, false_positive_rate: float) -> float:
    """Return a bound on how often any attack detects the unit at this false positive rate.

    Guarantee: an upper bound if no divergence between neighbours' outputs, in either direction, exceeds `values`. An
    attack processes the output to one bit, which is true with probability a without the unit and b with it, so
    D_α(b‖a) and D_α(a‖b) are at most the divergence at each order α (data processing). The bound is the largest b
    that all orders admit. No conversion from the same divergences gives less, since that bit itself has them; in
    particular it is at most δ(ε) + e^ε·a for every ε.

    Args:
        orders: Orders above 1; the last ones may be infinite.
        values: A bound on the Rényi divergence at each order. May be infinite.
        false_positive_rate: From 0 to 1. At 1 the unit is always detected. At 0 it never is if a divergence is known:
            what is impossible without the unit is then impossible with it.
    """
    if false_positive_rate >= 1:
        return 1.0
    if false_positive_rate <= 0:
        return 0.0 if np.isfinite(values).any() else 1.0
    finite = np.isfinite(orders) & np.isfinite(values)
    order, log_allowed = orders[finite], (orders[finite] - 1) * values[finite]
    pure = float(np.min(values[np.isinf(orders)], initial=np.inf))
    without = (math.log(false_positive_rate), math.log1p(-false_positive_rate))

    def admits(rate: float) -> bool:
        with_unit = (math.log(rate), math.log1p(-rate))
        largest_ratio = max(abs(one - other) for one, other in zip(with_unit, without, strict=True))
        ahead = _log_moment(order, with_unit, without)
        back = _log_moment(order, without, with_unit)
        is_allowed = np.maximum(ahead, back) <= log_allowed * (1 + ROUNDING) + ROUNDING
        return largest_ratio <= pure + ROUNDING and bool(is_allowed.all())

    low, high = false_positive_rate, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if admits(middle) else (low, middle)
    return high


def _log_moment(orders: Array, first: tuple[float, float], second: tuple[float, float]) -> Array:
    """Return (α−1)·D_α of one bit from the logarithms of its two probabilities, at each order."""
    yes, no = (orders * p + (1 - orders) * q for p, q in zip(first, second, strict=True))
    return np.logaddexp(yes, no)


def bound_below_two(order: float, at_two: float) -> float:
    """Bound the divergence at an order between 1 and 2, from a bound at order 2 on both directions.

    Guarantee: of all pairs whose divergences of order 2 are at most v in both directions, randomised response whose
    loss is ±x, with 2·cosh(x) = 1 + e^v, has the largest divergence at every order α between 1 and 2:
    log(cosh((α−1/2)x)/cosh(x/2))/(α−1).

    The argument. Let r be the ratio of the two densities, and E the expectation under the second, so that E 1 = E r = 1
    and both E r² and E 1/r are at most e^v. Choose h(r) = a/r + b + cr + dr² that touches r^α at e^x and e^−x: four
    zeros of h(r) − r^α, counted twice each. By Descartes' rule, which holds for real exponents, a function of five
    powers has at most four, and as many only if its signs alternate: so a, c and d are positive, there is no other
    zero, and h(r) ≥ r^α everywhere. Hence E r^α ≤ a·e^v + b + c + d·e^v. Randomised response attains it: its loss is
    ±x only, and there E r² = E 1/r = e^x + e^−x − 1 = e^v.
    """
    if not at_two < LARGEST_LOSS:
        return at_two
    excess = np.expm1(at_two) / 2  # cosh(x) − 1
    loss = np.log1p(excess + np.sqrt(excess * (excess + 2)))
    # cosh(A) − cosh(B) = 2·sinh((A+B)/2)·sinh((A−B)/2)
    growth = 2 * np.sinh(order * loss / 2) * np.sinh((order - 1) * loss / 2) / np.cosh(loss / 2)
    return float(min(at_two, np.log1p(growth) / (order - 1) * (1 + ROUNDING)))
