"""Sums and norms of rows in double precision, in pieces that stay in a processor's cache.

A sum in single precision rounds by the size of all that is in it: two sums that differ in one of n rows of norm 1 may
come out up to 2n²·2⁻²⁴ further apart than they are, which no accountant counts (docs/notes/numerics.md). On a GPU
kernels of Triton read rows in float32 once (`double_kernels.py`); torch's operations do everything else.
"""

from __future__ import annotations

from discreet.lazy_torch import Tensor, torch
from discreet.logs import get_log

log = get_log(__name__)

CPU_PIECE = 2**18  # values that are converted at once: 2 MiB of doubles
GPU_PIECE = 2**23  # a GPU has more cache, and takes longer to start
_working: dict[torch.device, bool] = {}  # what a trial of the kernels found


def weighted_sums(rows: Tensor, weights: Tensor) -> Tensor:
    """Return Σ_e weights[c, e]·rows[c, e] for each c, in double precision: c sums of e rows each.

    Args:
        rows: Axes: sums, rows, values.
        weights: Axes: sums, rows; in double precision.

    Guarantee: each product is of numbers in double precision, whatever the type of `rows`, and each value is a sum of
    the products in some order in double precision. Settings of torch for matrix products (TF32, autocast) change
    nothing, since they concern single precision alone.
    """
    if kernels_serve(rows, weights):
        from discreet import double_kernels

        sums_by_kernels: Tensor = double_kernels.weighted_sums(rows, weights)
        return sums_by_kernels
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
        whole = rows.new_empty(1, size, dtype=torch.float64)  # its parts are written while they are in the cache
        for values, part in zip(torch.split(rows, piece, dim=2), torch.split(whole, piece, dim=1), strict=True):
            part.copy_(weighted_sums(values, weights))
        return whole
    total = rows.new_zeros(1, size, dtype=torch.float64)
    together = max(1, piece // size)
    for some, factors in zip(torch.split(rows[0], together), torch.split(weights, together, dim=1), strict=True):
        total = torch.addmm(total, factors, some.double())
    return total


def row_norms(rows: Tensor, order: int = 2) -> Tensor:
    """Return the L2 (or L1) norm over the last axis, in double precision.

    Torch would write a converted copy of all rows first, which takes several times as long if it is large.
    """
    size = rows.shape[-1]
    if order in (1, 2) and kernels_serve(rows):
        from discreet import double_kernels

        norms_by_kernels: Tensor = double_kernels.row_norms(rows.reshape(-1, size), order)
        return norms_by_kernels.reshape(rows.shape[:-1])
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


def scaled_rows(rows: Tensor, factors: Tensor) -> Tensor:
    """Return each row times its own factor, with 0 in place of NaN, for rows that the kernels serve.

    Each product is of numbers in double precision, rounded to the type of `rows` once.
    """
    from discreet import double_kernels

    found: Tensor = double_kernels.scaled_rows(rows.reshape(len(rows), -1), factors)
    return found.reshape(rows.shape)


def kernels_serve(rows: Tensor, *weights: Tensor) -> bool:
    """Return whether the kernels take these tensors. They have no gradient, and no rule for functorch's transforms."""
    if not rows.is_cuda or rows.dtype != torch.float32 or rows.numel() == 0:
        return False
    tensors = (rows, *weights)
    if any(each.device != rows.device or each.dtype != torch.float64 for each in weights):
        return False
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return False
    return not any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors)) and kernels_work(rows.device)


def kernels_work(device: torch.device) -> bool:
    """Return whether Triton is installed, compiles for this GPU and returns the right sums, found once by small ones.

    A recording of a CUDA graph can't wait for them, so that it has torch's operations if none were tried before.
    """
    if device not in _working:
        if torch.cuda.is_current_stream_capturing():
            return False
        _working[device] = torch.version.cuda is not None and _try_kernels(device)
    return _working[device]


def _try_kernels(device: torch.device) -> bool:
    try:
        from discreet.double_kernels import try_kernels

        with torch.utils._python_dispatch._disable_current_modes():  # a tracer must not see the trial
            try_kernels(device)
    except Exception as error:  # noqa: BLE001 - whatever a compiler raises, torch's operations do the same
        log.warning("double kernels not available", error=type(error).__name__)
        return False
    return True
