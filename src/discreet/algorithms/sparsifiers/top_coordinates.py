"""Choosing exactly k coordinates, for one model or for a block of clients."""

import math
from fractions import Fraction

import torch
from torch import Tensor

from discreet.errors import InvalidInput
from discreet.params import Params, flatten, unflatten


def count_kept(fraction: float, coordinates: int) -> int:
    """k = ceil(fraction·d), of the fraction as it is written: 0.1·30 is 3.0000000000000004 in floats."""
    return math.ceil(Fraction(repr(fraction)) * coordinates)


def largest_mask(block: Params, fraction: float, *, per_layer: bool) -> Params:
    """For each client which of its coordinates are the largest: of each tensor, or of all together.

    Guarantee: exactly k for each, whatever the ties, of which the first in order count. What is not a number counts
    as infinite: it is kept, and left to the clip to see.
    """
    if per_layer:
        return {name: largest_mask({name: value}, fraction, per_layer=False)[name] for name, value in block.items()}
    together = flatten(block, leading=1)  # ties go by name, not by the order in which a model lists its tensors
    chosen = _largest_in_rows(together, count_kept(fraction, together.shape[1]))
    return unflatten(chosen, {name: value[0] for name, value in block.items()})


def apply_mask(masks: Params, block: Params) -> Params:
    """The block with zeros where a mask is false; NaN·0 would be NaN. Rows may share a mask, and no mask adds rows."""
    for name, value in block.items():
        if masks[name].shape not in (value.shape, value.shape[1:]):
            raise InvalidInput(
                f"A mask must have the shape of what it covers, {tuple(value.shape)}, and got "
                f"{tuple(masks[name].shape)}."
            )
    return {name: torch.where(masks[name], value, torch.zeros_like(value)) for name, value in block.items()}


def _largest_in_rows(rows: Tensor, k: int) -> Tensor:
    size = rows.abs()
    if size.is_floating_point():
        size = size.nan_to_num(nan=math.inf, posinf=math.inf)
    # the k-th largest value, and not the places of the k largest: among equals devices and shapes choose differently
    level = size.kthvalue(size.shape[1] - k + 1, dim=1, keepdim=True).values
    above, equal = size > level, size == level
    room = k - above.sum(dim=1, keepdim=True)
    return above | (equal & (equal.cumsum(dim=1, dtype=torch.int32) <= room))
