"""Sums and norms of rows in double precision, in pieces that stay in a processor's cache.

A sum in single precision rounds by the size of all that is in it: two sums that differ in one of n rows of norm 1 may
come out up to 2n²·2⁻²⁴ further apart than they are, which no accountant counts (docs/notes/numerics.md).
"""

from __future__ import annotations

from discreet.lazy_torch import Tensor, torch

CPU_PIECE = 2**18  # values that are converted at once: 2 MiB of doubles
GPU_PIECE = 2**23  # a GPU has more cache, and takes longer to start


def weighted_sums(rows: Tensor, weights: Tensor) -> Tensor:
    """Return Σ_e weights[c, e]·rows[c, e] for each c, in double precision: c sums of e rows each.

    Args:
        rows: Axes: sums, rows, values.
        weights: Axes: sums, rows; in double precision.

    Guarantee: each product is of numbers in double precision, whatever the type of `rows`, and each value is a sum of
    the products in some order in double precision. Settings of torch for matrix products (TF32, autocast) change
    nothing, since they concern single precision alone.
    """
    piece = GPU_PIECE if rows.is_cuda else CPU_PIECE
    sums, count, size = rows.shape
    if count * size <= piece:
        together = max(1, piece // max(1, count * size))
        parts = zip(torch.split(rows, together), torch.split(weights, together), strict=True)
        return torch.cat([(factors[:, None] @ some.double())[:, 0] for some, factors in parts])
    if sums > 1:
        return torch.cat(
            [weighted_sums(*one) for one in zip(torch.split(rows, 1), torch.split(weights, 1), strict=True)]
        )
    if size > piece:
        return torch.cat([weighted_sums(values, weights) for values in torch.split(rows, piece, dim=2)], dim=1)
    total = rows.new_zeros(1, size, dtype=torch.float64)
    together = max(1, piece // size)
    for some, factors in zip(torch.split(rows[0], together), torch.split(weights, together, dim=1), strict=True):
        total = torch.addmm(total, factors, some.double())
    return total


def row_norms(rows: Tensor, order: int = 2) -> Tensor:
    """Return the L2 (or L1) norm over the last axis, in double precision.

    On a CPU torch would write a converted copy of all rows first, which takes several times as long if it is large.
    """
    size = rows.shape[-1]
    if rows.is_cuda or rows.numel() <= 4 * CPU_PIECE or rows.dtype == torch.float64:
        return _norms(rows, order)
    flat = rows.reshape(-1, size)
    if size > CPU_PIECE:
        pieces = torch.stack([_norms(some, order) for some in torch.split(flat, CPU_PIECE // 8, dim=1)])
        found: Tensor = torch.linalg.vector_norm(pieces, order, dim=0)
    else:
        found = torch.cat([_norms(some, order) for some in torch.split(flat, max(1, CPU_PIECE // size))])
    return found.reshape(rows.shape[:-1])


def _norms(rows: Tensor, order: int) -> Tensor:
    found: Tensor = torch.linalg.vector_norm(rows, order, dim=-1, dtype=torch.float64)
    return found


def sum_rows(rows: Tensor) -> Tensor:
    """Return the sum over the first axis: of integers as it is, of other numbers in double precision."""
    if not rows.is_floating_point():
        return rows.sum(dim=0)
    flat = rows.reshape(1, len(rows), rows.shape[1:].numel())
    return weighted_sums(flat, flat.new_ones(1, len(rows), dtype=torch.float64)).reshape(rows.shape[1:])
