"""How fine a lattice a ring can carry, and how many bits a ring needs, for a chance to wrap around that is given.

A wrap-around spoils a coordinate of one sum; it reveals nothing, since reducing is done to what is already private.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from discreet.errors import InvalidInput
from discreet.part import Count, Flag, NonNegative, Positive, part
from discreet.privacy.skellam import RETRY, l1_of_integers, l2_after_rounding
from discreet.privacy.wording import compact
from discreet.secure_sums.discrete_noise import LARGEST_RATE, SMALLEST_RATE
from discreet.secure_sums.lattice.ring import MOST_BITS

IntegerNoise: TypeAlias = Literal["skellam", "discrete_gaussian"]
Limit: TypeAlias = Literal["ring", "sampler", "doubles"]

FINEST = 2.0**50  # of a scaled clip norm: rounding needs fractions, which doubles lose at 2^52
COARSEST = 0.01  # what rounding may add to a sensitivity, and so to the noise, where the bits are ours to choose


@part
class SumPlan:
    """What a sum in the ring holds: `vectors` of `dimension` coordinates, rounded, and `shares` of noise.

    `vectors` counts clients · examples · local steps, each of which adds up to `clip_norm`. Either each is rounded,
    conditionally; or `sums` of them are, each once. `noise_deviation` is that of all shares together, before scaling.
    `rotated` vectors have `dimension` padded to a power of two.
    """

    bits: Count
    vectors: Count
    sums: Count | None = None  # None: vector by vector
    clip_norm: Positive
    dimension: Count
    noise_deviation: NonNegative
    shares: Count
    noise: IntegerNoise = "skellam"
    rotated: Flag = False

    def __post_init__(self) -> None:
        if not 2 <= self.bits <= MOST_BITS:
            raise InvalidInput(f"A ring has between 2 and {MOST_BITS} bits, and got {self.bits}.")


@part
class Scale:
    """A scale, the chance that any coordinate of one sum leaves the ring at it, and what decided it.

    `by` is the ring; or the sampler, by the largest variance that a share may have; or doubles, by their fractions.
    """

    scale: Positive
    wraparound: NonNegative
    by: Limit
    norm: Positive  # of a scaled vector: the clip norm in lattice units
    l2_sensitivity: Positive  # after rounding
    l1_sensitivity: Positive
    share_variance: NonNegative


def fit_scale(plan: SumPlan, wraparound: float = 1e-9) -> Scale:
    """The largest scale at which one sum wraps around, in any coordinate, with probability `wraparound` at most.

    Guarantee: the reported probability is an upper bound. Unrotated, for any vectors whatever: the signal is taken at
    its worst, `vectors`·scale·clip_norm in one coordinate, and so is the rounding, one for each that is rounded.
    Rotated, for vectors that don't depend on the signs, the signal is spread over the coordinates (Hoeffding).
    Noise is bounded by its moment-generating function (Chernoff), all coordinates by their sum.
    """
    if not 0 < wraparound < 1:
        raise InvalidInput(f"The chance of a wrap-around must lie between 0 and 1, and got {wraparound:g}.")
    high, limit = _finest_scale(plan)
    if wraparound_probability(plan, high) <= wraparound:
        return _build_scale(plan, high, limit)
    low = high * 2.0**-100
    if not wraparound_probability(plan, low) <= wraparound:
        raise InvalidInput(
            f"A ring of {plan.bits} bits is too small for {plan.sums or plan.vectors} rounded "
            f"{'vectors' if plan.sums is None else 'sums'} with their noise.",
            fix="Take more bits, or leave them out: they follow from what a sum carries.",
        )
    low, _ = _bisect(low, high, lambda scale: wraparound_probability(plan, scale) > wraparound)
    return _build_scale(plan, low, "ring")


def check_scale(plan: SumPlan, scale: float, wraparound: float = 1e-9) -> None:
    """Refuse a scale at which a sum wraps around more often than `wraparound`, or for which no share can be drawn."""
    found, deviation = wraparound_probability(plan, scale), plan.noise_deviation / math.sqrt(plan.shares)
    largest, _ = _finest_scale(plan)
    least = math.sqrt(2 * SMALLEST_RATE) / deviation if deviation else 0.0
    if not least <= scale <= largest * (1 + 1e-13):  # on another machine the last digit may differ
        raise InvalidInput(
            f"A lattice of scale {scale:g} is too {'coarse' if scale < least else 'fine'}: with this noise its shares "
            f"can be drawn between {least:g} and {largest:g}.",
            fix="Leave scale out, and it follows from what a sum carries.",
        )
    if not found <= wraparound * (1 + 1e-6):
        raise InvalidInput(
            f"At a scale of {scale:g} a sum leaves the ring of {plan.bits} bits with a probability of up to "
            f"{compact(found, 2)}, and {compact(wraparound)} is allowed.",
            fix="Leave scale out, and it follows from what a sum carries; or take more bits.",
        )


def wraparound_probability(plan: SumPlan, scale: float) -> float:
    """At most how often a sum at this scale has a coordinate outside [−2^(bits−1), 2^(bits−1))."""
    whole = plan.vectors * scale * plan.clip_norm
    room = 2.0 ** (plan.bits - 1) - 1 - (plan.sums or plan.vectors)  # each is moved by less than 1 when it is rounded
    spread = whole * whole / plan.dimension if plan.rotated else 0.0
    room -= 0.0 if plan.rotated else whole
    if room <= 0:
        return 1.0
    log_tail = _log_tail(room, spread, (scale * plan.noise_deviation) ** 2, plan.noise)
    return min(1.0, 2 * plan.dimension * math.exp(log_tail))


def fewest_bits(plan: SumPlan, wraparound: float = 1e-9, scale: float | None = None) -> int:
    """The smallest ring for this scale; or, with none given, for one at which rounding adds no more than COARSEST.

    `plan.bits` are the most that there may be.
    """
    asked = _least_scale(plan) if scale is None else scale
    found = bisect_left(
        range(2, plan.bits + 1),
        True,
        key=lambda bits: wraparound_probability(replace(plan, bits=bits), asked) <= wraparound,
    )
    return min(2 + found, plan.bits)  # where none is enough, `fitted` says what can be had, and `check` what can't


def _least_scale(plan: SumPlan) -> float:
    """Where rounding adds COARSEST to a sensitivity; the finest that there is, where that is coarser."""

    def is_fine(scale: float) -> bool:
        norm = scale * plan.clip_norm
        return _sensitivity(plan, norm) <= (1 + COARSEST) * norm

    high, _ = _finest_scale(plan)
    return _bisect(high * 2.0**-100, high, is_fine)[1]


def _bisect(low: float, high: float, is_high: Callable[[float], bool]) -> tuple[float, float]:
    """Where one turns into the other, between these two, to nine digits."""
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_high(middle) else (middle, high)
    return low, high


def _finest_scale(plan: SumPlan) -> tuple[float, Limit]:
    """The largest scale of all, and what limits it.

    The sampler does where one share's variance reaches what it is sound for: twice the largest Poisson rate.
    """
    by_doubles, by_sampler = FINEST / plan.clip_norm, math.inf
    if plan.noise_deviation:
        by_sampler = math.sqrt(2 * LARGEST_RATE * plan.shares) / plan.noise_deviation * (1 - 1e-12)  # it is rounded
    return (by_sampler, "sampler") if by_sampler <= by_doubles else (by_doubles, "doubles")


def _sensitivity(plan: SumPlan, norm: float) -> float:
    return l2_after_rounding(norm, plan.dimension, RETRY if plan.sums is None else 0.0)


def _log_tail(room: float, spread: float, variance: float, noise: IntegerNoise) -> float:
    """log P[X ≥ room] at most, min over λ of K(λ) − λ·room.

    K is spread·λ²/2 for a sub-Gaussian signal, plus v·(cosh λ − 1) for Skellam noise, or at most v·λ²/2 for discrete
    Gaussian shares (Canonne, Kamath, Steinke 2020). Any λ gives a bound; that with K'(λ) = room the best.
    """
    if spread + variance == 0:
        return -math.inf
    if noise == "discrete_gaussian":
        return -(room * room) / (2 * (spread + variance))
    low, high = 0.0, room / spread if variance == 0 else math.asinh(room / variance)
    for _ in range(100):
        tilt = (low + high) / 2
        low, high = (tilt, high) if spread * tilt + variance * math.sinh(tilt) < room else (low, tilt)
    return spread * low * low / 2 + 2 * variance * math.sinh(low / 2) ** 2 - low * room


def _build_scale(plan: SumPlan, scale: float, by: Limit) -> Scale:
    norm = scale * plan.clip_norm
    l2 = _sensitivity(plan, norm)
    return Scale(
        scale=scale,
        wraparound=wraparound_probability(plan, scale),
        by=by,
        norm=norm,
        l2_sensitivity=l2,
        l1_sensitivity=l1_of_integers(l2, plan.dimension),
        share_variance=(scale * plan.noise_deviation) ** 2 / plan.shares,
    )
