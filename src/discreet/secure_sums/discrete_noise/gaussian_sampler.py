"""Exact sampling of discrete Gaussian noise: in doubles where they decide, and in more digits where they don't.

Canonne, Kamath and Steinke (2020): draw a discrete Laplace number, and accept it with the probability that makes the
result discrete Gaussian. Both steps compare a uniform number with a real one. 53 bits of the uniform number are drawn;
an interval of doubles around the real one nearly always decides the comparison. Where it doesn't, more bits are drawn
and more digits computed until it does, so the result is the one that infinitely many of both would give.
"""

import math
from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.secure_sums.discrete_noise.chunks import Integers, Source, draw_in_chunks

Bools: TypeAlias = NDArray[np.bool_]
Interval: TypeAlias = tuple[Decimal, Decimal, int]  # its ends, and the number of digits to compute with

SMALLEST, LARGEST = 1e-6, 1e13  # of σ²: to the largest, doubles leave fewer than one draw in ten million undecided
STEP = 2.0**-53  # between two of numpy's uniform numbers
UNSURE = 2.0**-49  # how far a logarithm, an exponential or a product of doubles may be off, relatively: 16 roundings
WORD = 64  # bits by which an undecided number grows


def draw_discrete_gaussian(
    key: bytes, variance: float, shape: tuple[int, ...], source: Source, threads: int | None = None
) -> Integers:
    """Draw integers k with probability proportional to e^(−k²/2σ²), σ² = `variance`.

    Guarantee: exactly this distribution, if `source` gives independent fair bits and numpy's log and exp are correct to
    48 bits. Sums of such numbers are not discrete Gaussian: they are priced as DistributedDiscreteGaussianNoise.
    """
    if not SMALLEST <= variance <= LARGEST:
        raise InvalidInput(
            f"Discrete Gaussian noise is drawn for σ² between {SMALLEST:g} and {LARGEST:g}, and got {variance:g}.",
            fix="Choose another scale of the lattice.",
        )
    return draw_in_chunks(key, shape, source, lambda generator, size: _sample(generator, variance, size), threads)


def _sample(generator: np.random.Generator, variance: float, size: int) -> Integers:
    result = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        kept = _accept_proposals(generator, variance, math.ceil(1.4 * (size - filled)) + 16)[: size - filled]
        result[filled : filled + len(kept)] = kept
        filled += len(kept)
    return result


def _accept_proposals(generator: np.random.Generator, variance: float, proposed: int) -> Integers:
    """Draw discrete Laplace numbers of scale t = ⌊σ⌋ + 1, P[k] ∝ e^(−|k|/t), and return the accepted ones."""
    scale = math.isqrt(math.floor(variance)) + 1
    sizes = _draw_geometric(generator, scale, proposed)
    negative = generator.integers(0, 2, proposed, dtype=np.uint8).astype(np.bool_)
    good = ~(negative & (sizes == 0))  # else 0 would count twice, once for each sign
    good &= _are_accepted(generator, variance, scale, sizes)
    return np.asarray(np.where(negative, -sizes, sizes)[good])


def _draw_geometric(generator: np.random.Generator, scale: int, size: int) -> Integers:
    """Draw ⌊−t·ln U⌋ for uniform U, which is k or more with probability e^(−k/t)."""
    uniform = generator.random(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -scale * np.log(uniform)
        low = np.floor(value - (value * UNSURE + scale * STEP / uniform))  # U may be larger by a STEP: convexity
        high = np.floor(value + value * UNSURE)
    clear = np.maximum(low, 0) == high  # at U = 0, a NaN: never clear
    result = np.where(clear, high, 0).astype(np.int64)
    for i in np.flatnonzero(~clear):
        result[i] = _draw_geometric_exactly(_refine(generator, uniform[i]), scale)
    return result


def _are_accepted(generator: np.random.Generator, variance: float, scale: int, sizes: Integers) -> Bools:
    """Decide U < e^−γ for uniform U, with γ = (|k| − σ²/t)²/2σ²."""
    uniform = generator.random(len(sizes))
    middle = variance / scale
    off = np.abs(sizes - middle)
    gamma = off * off / (2 * variance)
    error = UNSURE * (1 + gamma + off * (sizes + middle) / variance)
    chance = np.exp(-gamma)
    accepted = np.asarray(uniform + STEP <= chance * (1 - error))
    clear = accepted | (uniform >= chance * (1 + error))
    for i in np.flatnonzero(~clear):
        accepted[i] = _is_accepted_exactly(_refine(generator, uniform[i]), variance, scale, int(sizes[i]))
    return accepted


def _draw_geometric_exactly(uniform: Iterator[Interval], scale: int) -> int:
    for low, high, digits in uniform:
        with localcontext(_decimal_context(digits)):
            error = Decimal(10) ** (10 - digits)
            most = -scale * low.ln() * (1 + error) + error
            least = -scale * high.ln() * (1 - error) - error
            if most.is_finite() and max(math.floor(least), 0) == math.floor(most):
                return math.floor(most)
    raise AssertionError("a uniform number has no end")


def _is_accepted_exactly(uniform: Iterator[Interval], variance: float, scale: int, size: int) -> bool:
    exact = Decimal(variance)
    for low, high, digits in uniform:
        with localcontext(_decimal_context(digits)):
            gamma = (size - exact / scale) ** 2 / (2 * exact)
            chance = (-gamma).exp()
            error = (1 + gamma) * Decimal(10) ** (30 - digits)  # |k| − σ²/t loses fewer than 30
            if high <= chance * (1 - error):
                return True
            if low >= chance * (1 + error):
                return False
    raise AssertionError("a uniform number has no end")


def _refine(generator: np.random.Generator, uniform: float) -> Iterator[Interval]:
    """Yield ever smaller intervals around a uniform number whose first 53 bits are known, with their precision."""
    value = round(uniform / STEP)
    for bits in count(53 + WORD, WORD):
        value = (value << WORD) | int(generator.bit_generator.random_raw())
        digits = bits + 60  # bits of them write value/2^bits exactly
        with localcontext(_decimal_context(digits)):
            interval = Decimal(value) / 2**bits, Decimal(value + 1) / 2**bits, digits
        yield interval


def _decimal_context(digits: int) -> Context:
    return Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)
