"""The verdict on one card: is its ε proved, refuted, or can't it be told?"""

import math
import re
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Literal, TypeAlias

from flint import arb

from discreet.verify.balls import lower, upper
from discreet.verify.card_reader import Card, Step, UnknownEvent, count_steps
from discreet.verify.closed_forms import gaussian_delta, single_delta
from discreet.verify.composition import Enclosure, enclose_delta
from discreet.verify.dominating_noise import DOMINATING, replace_integer_noise
from discreet.verify.renyi_bound import bound_delta
from discreet.verify.step_pairs import GAUSSIAN, counted_pairs, squared_shift

Word: TypeAlias = Literal["proved", "refuted", "unknown"]

READ_TO = 1e-12  # relative: a card's ε is read to twelve digits, more than any card prints


@dataclass(frozen=True)
class Verdict:
    """What is known of a card's claim.

    Guarantee: `proved` means that δ(ε) of the named pairs is at most the card's δ, `refuted` that it is above. Where
    only a bound from above is known, `low` of the enclosure is 0.
    """

    word: Word
    reason: str
    enclosure: Enclosure
    direction: str = ""
    pairs: tuple[str, ...] = ()
    seconds: float = 0.0


def check_card(card: Card) -> Verdict:
    """Prove or refute a card's ε at its δ."""
    if card.epsilon == math.inf:
        return Verdict("unknown", "An infinite ε promises nothing, so there is nothing to prove.", Enclosure(0.0, 1.0))
    start, epsilon = time.perf_counter(), card.epsilon * (1 + READ_TO)
    try:
        found, direction, pairs = _enclose(count_steps(card.event), card.relation, epsilon, card.delta)
    except UnknownEvent as unknown:
        return Verdict("unknown", str(unknown), Enclosure(0.0, 1.0))
    except (ArithmeticError, ValueError) as failure:  # numbers beyond what doubles hold
        return Verdict("unknown", f"The bounds could not be computed: {failure}", Enclosure(0.0, 1.0))
    word: Word = "proved" if found.high <= card.delta else "refuted" if found.low > card.delta else "unknown"
    low, high = _format_bound(found.low, ROUND_FLOOR), _format_bound(found.high, ROUND_CEILING)
    between = {"proved": f"at most {high}", "refuted": f"at least {low}"}.get(word, f"between {low} and {high}")
    reason = f"δ(ε) is {between}, and the card says {_format_bound(card.delta, ROUND_HALF_EVEN)}."
    return Verdict(word, reason, found, direction, pairs, time.perf_counter() - start)


def _enclose(
    steps: Counter[Step], relation: str, epsilon: float, delta: float
) -> tuple[Enclosure, str, tuple[str, ...]]:
    """Enclose δ(ε) in the worse direction, and name it and the pairs."""
    if not steps:
        return Enclosure(0.0, 0.0), "both", ("nothing was released",)
    if (replaced := replace_integer_noise(steps)) != steps:
        return _bound_integer_noise(steps, replaced, relation, epsilon, delta)
    if all(step[0] == "gaussian" for step in steps):
        mu = squared_shift(steps, relation).sqrt()
        return _as_enclosure(gaussian_delta(mu, arb(epsilon))), "both", (GAUSSIAN,)
    try:
        pairs = counted_pairs(steps, relation)
    except UnknownEvent as unknown:
        high, bounds = bound_delta(steps, relation, epsilon, unknown)
        return Enclosure(0.0, high), "both", bounds
    names = tuple(f"{pair.times} × {pair.name}" for pair in pairs)
    if steps.total() == 1 and (exact := single_delta(next(iter(steps)), relation, epsilon)) is not None:
        return _as_enclosure(exact), "the worse one, in closed form", names
    forward = enclose_delta([(pair.forward, pair.times) for pair in pairs], epsilon, delta)
    if all(pair.forward is pair.backward for pair in pairs):
        return forward, "both, by symmetry", names
    backward = enclose_delta([(pair.backward, pair.times) for pair in pairs], epsilon, delta)
    direction = "forward: with the unit against without it" if forward.high >= backward.high else "backward"
    return Enclosure(max(forward.low, backward.low), max(forward.high, backward.high)), direction, names


def _bound_integer_noise(
    steps: Counter[Step], replaced: Counter[Step], relation: str, epsilon: float, delta: float
) -> tuple[Enclosure, str, tuple[str, ...]]:
    """Bound δ(ε) from above by a dominating Gaussian, or by Rényi divergences where those are smaller."""
    found, _, pairs = _enclose(replaced, relation, epsilon, delta)
    high, names = found.high, (DOMINATING, *pairs)
    if high > delta:
        with suppress(UnknownEvent):
            high, names = min((high, names), bound_delta(steps, relation, epsilon, UnknownEvent()))
    return Enclosure(0.0, high), "both", names


def _as_enclosure(delta: arb) -> Enclosure:
    return Enclosure(max(0.0, lower(delta)), min(1.0, upper(delta)))


def _format_bound(value: float, rounding: str) -> str:
    return re.sub("e-0?", "e-", f"{float(Context(prec=6, rounding=rounding).create_decimal(repr(value))):.6g}")
