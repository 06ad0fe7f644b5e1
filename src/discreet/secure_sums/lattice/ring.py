"""Integers modulo 2^bits, in which masked sums are computed, and the way back to real numbers."""

from __future__ import annotations

from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch

MOST_BITS = 62


def wrap_into_ring(integers: Tensor, bits: int) -> Tensor:
    """Return the integers modulo 2^bits, in [0, 2^bits). int64 itself wraps modulo 2^64, so sums stay correct."""
    _check(integers, bits)
    return integers & ((1 << bits) - 1)


def to_signed(integers: Tensor, bits: int) -> Tensor:
    """Return the congruent integers in [−2^(bits−1), 2^(bits−1)): the sum itself, if it is in this range.

    A sum outside is shifted by a multiple of 2^bits, which costs accuracy but no privacy. `Scale.wraparound` bounds the
    probability of that.
    """
    half = 1 << (bits - 1)
    return wrap_into_ring(integers + half, bits) - half


def decode_sum(total: Tensor, bits: int, scale: float) -> Tensor:
    """Return a sum in the ring in the units before scaling, as float64."""
    return to_signed(total, bits).to(torch.float64) / scale


def _check(integers: Tensor, bits: int) -> None:
    if integers.dtype != torch.int64:
        raise InvalidInput(
            f"A ring holds int64, and got {str(integers.dtype).removeprefix('torch.')}.", fix="Round first."
        )
    check_bits(bits)


def check_bits(bits: int) -> None:
    """Refuse a ring that is too small to have a sign, or too large for int64."""
    if not 2 <= bits <= MOST_BITS:
        raise InvalidInput(f"A ring has between 2 and {MOST_BITS} bits, and got {bits}.")
