"""Find the noise, the rounds or the sampling rate that a promise affords."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from discreet.errors import InvalidInput
from discreet.part import Positive, Probability, part
from discreet.privacy import accountant
from discreet.privacy.events import Event, Repeated
from discreet.privacy.question_checks import check_question
from discreet.privacy.release import Relation
from discreet.validation_errors import describe_value

PRECISION = 1e-5  # relative: how far above the least noise an answer may be
LEAST, MOST = 0.01, 1e12  # of noise: less protects nobody, more is not searched
MOST_ROUNDS = 10**12
SMOOTH = 16  # tries that suffice for a function without jumps


@part
class EpsilonTarget:
    """A promise of at most this ε at this δ."""

    epsilon: Positive
    delta: Probability


@part
class AttackTarget:
    """A promise that no attack detects a unit more often than `true_positive_rate` at `false_positive_rate`."""

    true_positive_rate: Probability
    false_positive_rate: Probability

    def __post_init__(self) -> None:
        if not self.true_positive_rate > self.false_positive_rate:
            raise InvalidInput(
                f"A true positive rate of {self.true_positive_rate:g} can't be promised at a false positive rate of "
                f"{self.false_positive_rate:g}: guessing finds that much.",
                fix="Ask for a true positive rate above the false positive rate.",
            )


Target: TypeAlias = EpsilonTarget | AttackTarget
Events: TypeAlias = Event | Sequence[Event]  # one for all clients, or one for each of several disjoint ones


def calibrate_noise(
    event_at: Callable[[float], Events], target: Target, relation: Relation = "add_or_remove", near: float = 1.0
) -> float:
    """Return the least noise x for which `event_at(x)` meets the target.

    Args:
        event_at: The event as a function of x, which may be a noise multiplier, a standard deviation, or one factor for
            clients that differ.
        target: What must be met.
        relation: How neighbours differ.
        near: A guess; a good one saves time.

    Guarantee: the returned value itself was accounted, and meets the target.

    Raises:
        InvalidInput: No noise meets the target.
    """

    _check_function(event_at)

    def excess_at(x: float) -> float:
        if x > MOST:
            raise InvalidInput("No noise meets this target.", fix="Raise the target, or release less often.")
        return log_excess(event_at(x), target, relation)

    return _find_least(excess_at, above=LEAST, near=near)


def calibrate_sampling_rate(
    event_at: Callable[[float], Events], target: Target, relation: Relation = "add_or_remove"
) -> float:
    """Return the largest sampling rate q ≤ 1 for which `event_at(q)` meets the target.

    Guarantee: the returned value itself was accounted, and meets the target.
    """

    _check_function(event_at)

    def excess_at(x: float) -> float:
        if x > MOST:
            raise InvalidInput("No sampling rate meets this target.", fix="Raise the target, or add noise.")
        return log_excess(event_at(1 / x), target, relation)

    return 1 / _find_least(excess_at, above=1.0)


def affordable_rounds(event: Event, target: Target, relation: Relation = "add_or_remove") -> int:
    """Return how many times the event may happen within the target; 0 if not even once."""

    check_question(event, relation)

    def excess_after(count: int) -> float:
        return log_excess(Repeated(count=count, event=event), target, relation)

    kept, refused = 0, 1
    at_kept, at_refused = -math.inf, excess_after(1)
    while at_refused <= 0:
        kept, at_kept = refused, at_refused
        refused *= 4
        if refused > MOST_ROUNDS:
            return kept
        at_refused = excess_after(refused)
    while refused - kept > 1:
        share = at_kept / (at_kept - at_refused) if math.isfinite(at_kept) and math.isfinite(at_refused) else 0.5
        guess = kept * (refused / max(kept, 1)) ** min(max(share, 0.1), 0.9)  # ε is about a power of the count
        count = min(max(round(guess), kept + 1), refused - 1)
        if (value := excess_after(count)) <= 0:
            kept, at_kept = count, value
        else:
            refused, at_refused = count, value
    return kept


def log_excess(events: Events, target: Target, relation: Relation) -> float:
    """Return log(spent ÷ allowed) of the worst client: at most 0 if the target is met."""
    if not isinstance(target, EpsilonTarget | AttackTarget):
        raise InvalidInput(
            f"target must be an EpsilonTarget or an AttackTarget, and got {describe_value(target)}.",
            fix="Write EpsilonTarget(epsilon=2, delta=1e-5).",
        )
    if isinstance(events, Sequence):
        if not events:
            raise InvalidInput("events must name the event of each client, and got none.")
        return max(log_excess(event, target, relation) for event in set(events))
    match target:
        case EpsilonTarget():
            spent, allowed = accountant.epsilon(events, target.delta, relation), target.epsilon
        case AttackTarget():
            spent = accountant.true_positive_rate(events, target.false_positive_rate, relation)
            allowed = target.true_positive_rate
    if not spent <= allowed:  # NaN is not within any budget
        return math.log(spent / allowed) if spent < math.inf else math.inf
    return min(0.0, math.log(spent / allowed)) if spent > 0 else -math.inf


def _check_function(event_at: object) -> None:
    if not callable(event_at):
        raise InvalidInput(
            f"event_at must be a function that returns an event, and got {describe_value(event_at)}.",
            fix="Write lambda noise: GaussianNoise(noise_multiplier=noise).",
        )


def _find_least(excess_at: Callable[[float], float], above: float, near: float = 1.0) -> float:
    """Return the least x ≥ `above` with excess_at(x) ≤ 0, for a falling function, by the secant method on a log scale.

    An accountant's value may jump where there is almost no noise; there, bisect between the largest x that failed and
    the least one that passed. Only a value that was accounted is returned.
    """
    x, low, high, slope = max(near, above), 0.0, math.inf, -1.0
    y, tries = excess_at(x), 0
    while True:
        tries += 1
        low, high = (low, x) if y <= 0 else (x, high)
        if high <= max(above, low * (1 + PRECISION)):
            return high
        step = min(max(-y / slope, PRECISION / 2), 2.0) if y > 0 else max(min(-y / slope, -PRECISION / 2), -2.0)
        tried = max(x * math.exp(step), above)
        if not low < tried < high or (tries > SMOOTH and tries % 2):
            tried = max(math.sqrt(low * high), above) if math.isfinite(high) else 2 * low
        at_tried = excess_at(tried)
        secant = (at_tried - y) / math.log(tried / x)
        slope = secant if math.isfinite(secant) and secant < 0 else -1.0
        x, y = tried, at_tried
