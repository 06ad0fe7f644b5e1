"""Bounding what one client, or one example, can move."""

import torch
from torch import Tensor

from discreet.params import Params, norms, scale_rows

AUTOMATIC_OFFSET = 0.01
ROUNDING = 1 - 1e-5  # norms and products in single precision are off by some 1e-6


def clip(block: Params, norm: float | Tensor, order: int = 2) -> Params:
    """Scale each row down to an L2 (or L1) norm of at most `norm` (one for all, or one a row).

    Guarantee: no row's norm exceeds `norm`, for any input; a zero row stays zero, and a row that holds NaN or
    infinity becomes zero.
    """
    found = norms(block, order=order)
    return {
        # NaN·0 is NaN, so a row that can't be scaled is replaced instead
        name: torch.where(_is_finite(found, value), value, torch.zeros_like(value))
        for name, value in scale_rows(clip_factors(found, norm), block).items()
    }


def clip_factors(found: Tensor, norm: float | Tensor, *, automatic: bool = False) -> Tensor:
    """What to multiply rows of these norms by: min(1, norm/found), and 0 where the norm is not finite.

    `automatic` brings all rows to nearly the same length instead, norm/(found + 0.01): then the clip and the learning
    rate are one knob (Bu et al. 2023).
    """
    if automatic:
        shrunk = ROUNDING * norm / (found + AUTOMATIC_OFFSET)
    else:
        shrunk = torch.where(found > norm, ROUNDING * norm / found, torch.ones_like(found))
    return torch.where(torch.isfinite(found), shrunk, torch.zeros_like(found))


def _is_finite(found: Tensor, value: Tensor) -> Tensor:
    return torch.isfinite(found).reshape(found.shape + (1,) * (value.dim() - 1))
