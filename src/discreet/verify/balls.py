"""Ball arithmetic by python-flint (Arb), and how balls become floating-point numbers."""

import math

from flint import arb, ctx

ctx.prec = 128
UNIT = 2.0**-53  # the relative error of one rounding


def upper(ball: arb) -> float:
    """Return a double that is not below the ball; infinite if the ball is unbounded."""
    value = float(ball.upper())
    return math.inf if math.isnan(value) else math.nextafter(value, math.inf)


def lower(ball: arb) -> float:
    """Return a double that is not above the ball."""
    return -upper(-ball)


def middle(ball: arb) -> float:
    """Return the ball as a double, within two roundings."""
    if ball.rel_accuracy_bits() < 53 and not ball.is_zero():
        raise ArithmeticError("A ball is wider than a rounding.")
    return float(ball.mid())


def normal_mass(low: float, high: float, mean: float = 0.0) -> arb:
    """Enclose P[low < N(mean, 1) < high]."""
    if low > mean:
        return upper_tail(arb(low) - mean) - upper_tail(arb(high) - mean)
    if high < mean:
        return normal_mass(-high, -low, -mean)
    return 1 - upper_tail(mean - arb(low)) - upper_tail(arb(high) - mean)


def upper_tail(x: arb) -> arb:
    """Enclose P[N(0, 1) > x]; x may be +∞."""
    return arb(0) if not x.is_finite() else (x / arb(2).sqrt()).erfc() / 2
