"""Upper bounds of δ(ε) by published Rényi divergences, in balls, for noise that has no dominating pair here."""

import math
from collections import Counter
from functools import lru_cache

from flint import arb

from discreet.verify.balls import upper
from discreet.verify.card_reader import Step, UnknownEvent

ORDERS = (*range(2, 65), *sorted({round(64 * 2 ** (k / 6)) for k in range(1, 25)}), *(2**k for k in range(11, 24)))
FRACTIONS = 32  # orders tried between the neighbours of the best one, and again between those, six times
NAMES = {
    "gaussian": "Rényi divergence of Gaussian noise, α·Δ²/(2σ²)",
    "discrete_gaussian": "Rényi bound of discrete Gaussian noise (Canonne, Kamath & Steinke 2020, Prop. 5)",
    "skellam": "Rényi bound of Skellam noise (Agarwal, Kairouz & Liu 2021, Thm 3.5)",
}


def bound_delta(
    steps: Counter[Step], relation: str, epsilon: float, unknown: UnknownEvent
) -> tuple[float, tuple[str, ...]]:
    """Bound δ(ε) from above over many orders (Canonne, Kamath & Steinke 2020, Prop. 12), and name the bounds.

    Between whole orders (α−1)·D_α is at most its chord, because it is convex. Raises `unknown` if a step has no bound.
    """
    if not {step[0] for step in steps} <= NAMES.keys():
        raise unknown
    factor = 2 if relation == "replace" else 1
    whole_moment = lru_cache(maxsize=None)(lambda step, order: (order - 1) * _divergence(step, arb(order), factor))

    def moment(step: Step, order: float) -> arb:
        """Enclose (α−1)·D_α of one step."""
        below = math.floor(order)
        if step[0] in ("gaussian", "discrete_gaussian"):  # proven at every order
            return (arb(order) - 1) * _divergence(step, arb(order), factor)
        start = whole_moment(step, below) if below > 1 else arb(0)
        return start if below == order else start + (arb(order) - below) * (whole_moment(step, below + 1) - start)

    def log_delta(order: float) -> arb:
        at, value = arb(order), sum((count * moment(step, order) for step, count in steps.items()), arb(0))
        return value - (at - 1) * arb(epsilon) + (at - 1) * (1 - 1 / at).log() - at.log()

    logs = [float(log_delta(order).mid()) for order in ORDERS]
    best = min(range(len(ORDERS)), key=logs.__getitem__)
    least, low, high = upper(log_delta(ORDERS[best])), ORDERS[max(best - 1, 0)], ORDERS[min(best + 1, len(ORDERS) - 1)]
    width, low = float(high - low) if best else 2.0, float(low) if best else 1.0
    for _ in range(6):
        bounds = {at: upper(log_delta(at)) for at in (low + width * k / FRACTIONS for k in range(1, FRACTIONS))}
        nearest = min(bounds, key=bounds.__getitem__)
        least, low, width = min(least, bounds[nearest]), nearest - width / FRACTIONS, 2 * width / FRACTIONS
    return min(1.0, upper(arb(least).exp())), tuple(dict.fromkeys(NAMES[step[0]] for step in steps))


def _divergence(step: Step, order: arb, factor: int) -> arb:
    """Enclose the bound on the Rényi divergence at this order, at `factor` times the sensitivity."""
    match step:
        case ("gaussian", z):
            return order * (factor / arb(z)) ** 2 / 2
        case ("discrete_gaussian", variance, l2):
            return order * (factor * arb(l2)) ** 2 / (2 * arb(variance))
        case _:  # Skellam noise; ‖k‖₁ ≤ ‖k‖₂·min(√d, ‖k‖₂) of an integer vector
            v, move, dimension = arb(step[1]), factor * arb(step[2]), step[3]
            l1 = move * arb(step[2]).min(arb(dimension).sqrt())
            excess = ((2 * order - 1) * move**2 + 6 * l1) / (4 * v**2)
            return order * move**2 / (2 * v) + excess.min(3 * l1 / (2 * v))
