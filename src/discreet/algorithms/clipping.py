"""Clip updates and gradients to a norm."""

from __future__ import annotations

from typing import NamedTuple

from discreet.double_sums import kernels_serve, scaled_rows
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, norms, scale_rows

AUTOMATIC_OFFSET = 0.01
ROUNDING = 1 - 1e-5  # room for norms and products in single precision, which are off by some 1e-6
SMALLEST_FACTOR = 1e-37  # smaller ones lose digits in single precision, and could round up to twice their value


class Clip(NamedTuple):
    """How gradients are clipped.

    Attributes:
        norm: The norm that no example's gradient exceeds; a column with one row for each client if they differ.
        automatic: Scale small gradients up to nearly that norm too.
    """

    norm: float | Tensor
    automatic: bool = False

    def for_client(self, client: int) -> Clip:
        """Return the clip of one client of the block."""
        return self._replace(norm=self.norm[client]) if isinstance(self.norm, torch.Tensor) else self


def clip(block: Params, norm: float | Tensor, order: int = 2, *, unit: float | Tensor = 1.0) -> Params:
    """Scale each row down to an L2 (or L1) norm of at most `norm`, and multiply it by `unit`.

    Args:
        block: Tensors with one row for each client.
        norm: One bound for all rows, or a tensor with one for each.
        order: Order of the norm, 2 or 1.
        unit: What the clipped rows are multiplied by, such as 1/norm.

    Guarantee: no row's norm exceeds `norm`, for any input, nor 1 after the row is divided by `norm`; a zero row stays
    zero, and a row that holds NaN, infinity, or numbers too large to be scaled exactly becomes zero.
    """
    _check_types(block)
    row_norms = norms(block, order=order)
    factors = clip_factors(row_norms, norm)
    if all(kernels_serve(value) for value in block.values()):
        multiples = factors * unit
        return {name: scaled_rows(value, multiples) for name, value in block.items()}
    clipped = _clip_by_torch(block, row_norms, factors)
    if isinstance(unit, torch.Tensor) or unit != 1:
        for value in clipped.values():  # which are new tensors
            value *= unit
    return clipped


def _clip_by_torch(block: Params, row_norms: Tensor, factors: Tensor) -> Params:
    scaled = scale_rows(factors, block)
    # a GPU would have to wait for the check, and a step that is traced for compiling has no numbers
    if type(row_norms) is torch.Tensor and row_norms.device.type == "cpu" and bool(row_norms.isfinite().all()):
        return scaled
    # NaN·0 and infinity·0 are NaN; a row with a factor above 0 has numbers only, which no factor makes larger
    return {name: value.nan_to_num_(0.0, 0.0, 0.0) for name, value in scaled.items()}


def clip_factors(row_norms: Tensor, norm: float | Tensor, *, automatic: bool = False) -> Tensor:
    """Return the factors that clip rows of these norms: min(1, ROUNDING·norm/row_norms).

    The factor is 0 for a norm that is not finite, and instead of factors below 1e-37.

    Args:
        row_norms: Norms of the rows.
        norm: The bound.
        automatic: Bring all rows to nearly the same norm instead, by norm/(row_norms + 0.01) (Bu et al. 2023). Then
            clip norm and learning rate are one parameter.
    """
    if automatic:
        shrunk = ROUNDING * norm / (row_norms + AUTOMATIC_OFFSET)
    else:
        most = ROUNDING * norm  # rows just below the norm are shrunk too: divided by it, they could round up to more
        shrunk = torch.where(row_norms > most, most / row_norms, torch.ones_like(row_norms))
    usable = torch.isfinite(row_norms) & (shrunk >= SMALLEST_FACTOR)
    return torch.where(usable, shrunk, torch.zeros_like(row_norms))


def _check_types(block: Params) -> None:
    for name, value in block.items():
        if value.dtype not in (torch.float32, torch.float64):
            raise InvalidInput(
                f"What is clipped is float32 or float64, and {name!r} is {str(value.dtype).removeprefix('torch.')}: in "
                "fewer digits a clipped row could be longer than the clip.",
                fix="Train in float32 or float64.",
            )
