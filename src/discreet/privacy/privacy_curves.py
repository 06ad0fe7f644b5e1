"""The whole guarantee of an event as curves: ε at each δ, and the errors of the best test for one unit."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from discreet.privacy import accountant
from discreet.privacy.events import Event
from discreet.privacy.question_checks import check_question
from discreet.privacy.release import Relation

DELTAS = tuple(10.0 ** (-12 + step / 4) for step in range(45))  # 1e-12 to 0.1, four for each power of ten
RATES = tuple(1 / (1 + math.exp(-odds / 4)) for odds in range(-28, 29))  # 0.001 to 0.999, evenly in the log odds


class EpsilonAtDelta(NamedTuple):
    """The smallest certified ε at one δ."""

    delta: float
    epsilon: float


class ErrorRates(NamedTuple):
    """A bound on every test for one unit: at this rate of false alarms it misses the unit at least this often."""

    false_positive_rate: float
    false_negative_rate: float


class PrivacyCurves(NamedTuple):
    """Both curves of one event, of which the ε at one δ was asked for."""

    event: Event
    relation: Relation
    delta: float
    epsilons: tuple[EpsilonAtDelta, ...]
    trade_off: tuple[ErrorRates, ...]


def compute_curves(event: Event, relation: Relation, delta: float) -> PrivacyCurves:
    """Compute both curves of an event at the usual places, and ε at this δ."""
    check_question(event, relation, delta=delta)
    epsilons = epsilon_curve(event, relation, sorted({*DELTAS, delta}))
    return PrivacyCurves(event, relation, delta, epsilons, trade_off_curve(event, relation))


def epsilon_curve(
    event: Event, relation: Relation = "add_or_remove", deltas: Sequence[float] = DELTAS
) -> tuple[EpsilonAtDelta, ...]:
    """Return ε at each δ.

    Guarantee: the event is (ε, δ)-private at every point, and so at all of them at once. ε never grows with δ: a
    point takes the smallest ε of all smaller δ, which holds there too.

    Args:
        event: What was released.
        relation: How neighbours differ.
        deltas: The δ at which to compute it, ascending.

    Raises:
        Unsupported: Nothing is proven for this event under this relation.

    Example:
        >>> from discreet.privacy.events import GaussianNoise
        >>> noise = GaussianNoise(noise_multiplier=1.0)
        >>> [round(point.epsilon, 3) for point in epsilon_curve(noise, deltas=(1e-5, 0.1))]
        [4.377, 0.923]
    """
    points, least = [], math.inf
    for delta in deltas:
        least = min(least, accountant.epsilon(event, delta, relation))
        points.append(EpsilonAtDelta(delta, least))
    return tuple(points)


def trade_off_curve(
    event: Event, relation: Relation = "add_or_remove", rates: Sequence[float] = RATES
) -> tuple[ErrorRates, ...]:
    """Return the trade-off between both errors of the best test for one unit (type I and type II).

    Guarantee: no test whose false positive rate is at most the one of a point has a smaller false negative rate.

    Args:
        event: What was released.
        relation: How neighbours differ.
        rates: The false positive rates at which to compute it, ascending.

    Raises:
        Unsupported: Nothing is proven for this event under this relation.

    Example:
        >>> from discreet.privacy.events import GaussianNoise
        >>> (point,) = trade_off_curve(GaussianNoise(noise_multiplier=1.0), rates=(0.05,))
        >>> round(point.false_negative_rate, 3)  # Φ(1.645 − 1)
        0.74
    """
    points, most = [], 1.0
    for rate in reversed(rates):  # a smaller rate of false alarms detects no more than a larger one
        most = min(most, accountant.true_positive_rate(event, rate, relation))
        points.append(ErrorRates(rate, 1 - most))
    return tuple(reversed(points))
