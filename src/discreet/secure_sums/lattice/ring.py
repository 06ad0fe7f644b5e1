"""Integers modulo 2^bits, in which sums under masks are taken, and the way back to real numbers."""

import torch
from torch import Tensor

from discreet.errors import InvalidInput

MOST_BITS = 62


def wrap_into_ring(integers: Tensor, bits: int) -> Tensor:
    """The integers modulo 2^bits, in [0, 2^bits). int64 itself is a ring of 2^64, so no sum of them can go wrong."""
    _check(integers, bits)
    return integers & ((1 << bits) - 1)


def to_signed(integers: Tensor, bits: int) -> Tensor:
    """What is congruent modulo 2^bits in [−2^(bits−1), 2^(bits−1)): the sum itself, if it lies there.

    Nothing is ever cut off at the ends: a sum outside comes back shifted by a multiple of 2^bits, which costs accuracy
    and no privacy, with a probability that `Scale.wraparound` bounds.
    """
    half = 1 << (bits - 1)
    return wrap_into_ring(integers + half, bits) - half


def decode_sum(total: Tensor, bits: int, scale: float) -> Tensor:
    """A sum in the ring, back in the units of what was scaled; float64."""
    return to_signed(total, bits).to(torch.float64) / scale


def _check(integers: Tensor, bits: int) -> None:
    if integers.dtype != torch.int64:
        raise InvalidInput(
            f"A ring holds int64, and got {str(integers.dtype).removeprefix('torch.')}.", fix="Round first."
        )
    if not 2 <= bits <= MOST_BITS:
        raise InvalidInput(f"A ring has between 2 and {MOST_BITS} bits, and got {bits}.")
