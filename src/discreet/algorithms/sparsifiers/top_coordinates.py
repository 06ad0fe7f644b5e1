"""Choose exactly k coordinates, for one model or for a block of clients."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, flatten, unflatten


def count_kept(fraction: float, coordinates: int) -> int:
    """Return k = ceil(fraction·d), with the fraction as written: in floats, 0.1·30 is 3.0000000000000004."""
    return math.ceil(Fraction(repr(fraction)) * coordinates)


def largest_mask(block: Params, fraction: float, *, per_layer: bool) -> Params:
    """Return a mask of each client's largest coordinates, of each tensor or of all together.

    Guarantee: exactly k for each client; of equal values the first in order are kept. NaN counts as infinite: it is
    kept, and the clip then zeroes the update.
    """
    if per_layer:
        return {name: largest_mask({name: value}, fraction, per_layer=False)[name] for name, value in block.items()}
    together = flatten(
        block, leading=1
    )  # sorted by name, so ties don't depend on the order in which a model lists its tensors
    chosen = _largest_in_rows(together, count_kept(fraction, together.shape[1]))
    return unflatten(chosen, {name: value[0] for name, value in block.items()})


def apply_mask(masks: Params, block: Params) -> Params:
    """Set the block to zero where a mask is false. All rows may share one mask.

    Raises:
        InvalidInput: If a mask has another shape.
    """
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
    # by the k-th largest value, not by topk: of equal values, devices and shapes choose differently
    level = size.kthvalue(size.shape[1] - k + 1, dim=1, keepdim=True).values
    above, equal = size > level, size == level
    room = k - above.sum(dim=1, keepdim=True)
    return above | (equal & (equal.cumsum(dim=1, dtype=torch.int32) <= room))
