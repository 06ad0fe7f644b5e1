"""The finest lattice that fits a ring, and the bits that a ring needs, at a given probability of a wrap-around.

A wrap-around corrupts one coordinate of one sum. It reveals nothing: the reduction is applied to private values.
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
from discreet.secure_sums.discrete_noise.skellam_sampler import LARGEST_RATE, SMALLEST_RATE
from discreet.secure_sums.lattice.ring import check_bits

IntegerNoise: TypeAlias = Literal["skellam", "discrete_gaussian"]
Limit: TypeAlias = Literal["ring", "sampler", "doubles"]

FINEST = 2.0**50  # of a scaled clip norm: rounding needs fractions, which doubles lose at 2^52
COARSEST = 0.01  # what rounding may add to a sensitivity, and so to the noise, where the bits are ours to choose


@part
class SumPlan:
    """What a sum in the ring holds: rounded `vectors` of `dimension` coordinates, and `shares` of noise.

    `vectors` counts clients · examples · local steps, each of norm at most `clip_norm`. Either each vector is rounded
    conditionally, or `sums` partial sums of them are rounded once each. `noise_deviation` is that of all shares
    together, before scaling. For `rotated` vectors, `dimension` is padded to a power of two.
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
        check_bits(self.bits)


@part
class Scale:
    """A scale, the probability that a coordinate of one sum leaves the ring, and what limited the scale.

    `by` is what limited it: the ring; the sampler, which has a largest variance; or doubles, which lose fractions.
    """

    scale: Positive
    wraparound: NonNegative
    by: Limit
    norm: Positive  # of a scaled vector: the clip norm in lattice units
    l2_sensitivity: Positive  # after rounding
    l1_sensitivity: Positive
    share_variance: NonNegative


def fit_scale(plan: SumPlan, wraparound: float = 1e-9) -> Scale:
    """Return the largest scale at which any coordinate of one sum wraps around with probability at most `wraparound`.

    Guarantee: the reported probability is an upper bound. Unrotated, it holds for all vectors: the signal is taken at
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
    """Refuse a scale at which a sum wraps around more often than `wraparound`, or at which no share can be drawn."""
    probability, deviation = wraparound_probability(plan, scale), plan.noise_deviation / math.sqrt(plan.shares)
    largest, _ = _finest_scale(plan)
    least = math.sqrt(2 * SMALLEST_RATE) / deviation if deviation else 0.0
    if not least <= scale <= largest * (1 + 1e-13):  # on another machine the last digit may differ
        raise InvalidInput(
            f"A lattice of scale {scale:g} is too {'coarse' if scale < least else 'fine'}: with this noise its shares "
            f"can be drawn between {least:g} and {largest:g}.",
            fix="Leave scale out, and it follows from what a sum carries.",
        )
    if not probability <= wraparound * (1 + 1e-6):
        raise InvalidInput(
            f"At a scale of {scale:g} a sum leaves the ring of {plan.bits} bits with a probability of up to "
            f"{compact(probability, 2)}, and {compact(wraparound)} is allowed.",
            fix="Leave scale out, and it follows from what a sum carries; or take more bits.",
        )


def wraparound_probability(plan: SumPlan, scale: float) -> float:
    """Return a bound on the probability that a coordinate of a sum is outside [−2^(bits−1), 2^(bits−1))."""
    whole = plan.vectors * scale * plan.clip_norm
    room = 2.0 ** (plan.bits - 1) - 1 - (plan.sums or plan.vectors)  # each is moved by less than 1 when it is rounded
    spread = whole * whole / plan.dimension if plan.rotated else 0.0
    room -= 0.0 if plan.rotated else whole
    if room <= 0:
        return 1.0
    log_tail = _log_tail(room, spread, (scale * plan.noise_deviation) ** 2, plan.noise)
    return min(1.0, 2 * plan.dimension * math.exp(log_tail))


def fewest_bits(plan: SumPlan, wraparound: float = 1e-9, scale: float | None = None) -> int:
    """Return the bits of the smallest ring for this scale, at most `plan.bits`.

    Without a scale, choose the smallest ring in which rounding adds no more than COARSEST to the sensitivity.
    """
    asked = _least_scale(plan) if scale is None else scale
    extra = bisect_left(
        range(2, plan.bits + 1),
        True,
        key=lambda bits: wraparound_probability(replace(plan, bits=bits), asked) <= wraparound,
    )
    return min(2 + extra, plan.bits)  # if none is enough, `fit_scale` or `check_scale` refuses


def _least_scale(plan: SumPlan) -> float:
    """Return the scale at which rounding adds COARSEST to a sensitivity, or the finest scale if that is coarser."""

    def is_fine(scale: float) -> bool:
        norm = scale * plan.clip_norm
        return _sensitivity(plan, norm) <= (1 + COARSEST) * norm

    high, _ = _finest_scale(plan)
    return _bisect(high * 2.0**-100, high, is_fine)[1]


def _bisect(low: float, high: float, is_high: Callable[[float], bool]) -> tuple[float, float]:
    """Bisect on a log scale, to nine digits, for the point where `is_high` turns true."""
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_high(middle) else (middle, high)
    return low, high


def _finest_scale(plan: SumPlan) -> tuple[float, Limit]:
    """Return the largest scale that the sampler and doubles allow, and which of the two limits it.

    The sampler limits the variance of one share to twice the largest sound Poisson rate.
    """
    by_doubles, by_sampler = FINEST / plan.clip_norm, math.inf
    if plan.noise_deviation:
        by_sampler = math.sqrt(2 * LARGEST_RATE * plan.shares) / plan.noise_deviation * (1 - 1e-12)  # it is rounded
    return (by_sampler, "sampler") if by_sampler <= by_doubles else (by_doubles, "doubles")


def _sensitivity(plan: SumPlan, norm: float) -> float:
    return l2_after_rounding(norm, plan.dimension, RETRY if plan.sums is None else 0.0)


def _log_tail(room: float, spread: float, variance: float, noise: IntegerNoise) -> float:
    """Return a bound on log P[X ≥ room]: the minimum over λ of K(λ) − λ·room.

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
