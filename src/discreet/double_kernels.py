"""Triton's kernels for sums, norms and multiples of rows: they read float32 once, and compute in float64.

It imports Triton, so it is imported on a GPU only. Each sum has an order that its own shape fixes: no atomics, and no
choice by measurement. Nothing waits for the device, so a CUDA graph can record it; the functions are operators of
torch, so a step can be traced with them inside.
"""

import math
from contextlib import AbstractContextManager, nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

SPLIT_FROM = 2**14  # values of a row that one program adds up, unless a row has more than MOST_SPLITS times as many
MOST_SPLITS = 1024
NARROW, WIDE = 128, 1024  # values of a row that a program reads at once
TILES = {16: (64, 16), 64: (16, 64)}  # rows and columns that a program reads at once, by the most values of a row
WIDE_TILE = (4, 256)
BUSY = 512  # programs for one sum, from which on its rows are not split
STEPS_OF_SPLIT = 8


@torch.library.custom_op("discreet::row_norms", mutates_args=())
def row_norms(rows: Tensor, order: int) -> Tensor:
    """Return the L2 (or L1) norm of each row, in double precision. A norm's bits depend on its own row only.

    Args:
        rows: Axes: rows, values; neither is empty.
        order: 2 or 1.
    """
    count, size = rows.shape
    splits = min(-(-size // SPLIT_FROM), MOST_SPLITS)
    parts = rows.new_empty(count * splits, dtype=torch.float64)
    with on_device_of(rows):
        _add_values(_with_adjacent_values(rows), parts, splits, squared=order == 2, root=order == 2 and splits == 1)
        if splits == 1:
            return parts
        found = torch.empty_like(parts[:count])
        _add_values(parts.view(count, splits), found, 1, squared=False, root=order == 2)
    return found


@row_norms.register_fake
def _(rows: Tensor, order: int) -> Tensor:
    return rows.new_empty(len(rows), dtype=torch.float64)


@torch.library.custom_op("discreet::weighted_sums", mutates_args=())
def weighted_sums(rows: Tensor, weights: Tensor) -> Tensor:
    """Return Σ_e weights[c, e]·rows[c, e] for each c, in double precision.

    Args:
        rows: Axes: sums, rows, values; none is empty.
        weights: Axes: sums, rows; in double precision.
    """
    with on_device_of(rows):
        return _add_rows(_with_adjacent_values(rows), weights.contiguous())


@weighted_sums.register_fake
def _(rows: Tensor, weights: Tensor) -> Tensor:
    return rows.new_empty(rows.shape[0], rows.shape[2], dtype=torch.float64)


@torch.library.custom_op("discreet::scaled_rows", mutates_args=())
def scaled_rows(rows: Tensor, factors: Tensor) -> Tensor:
    """Return factors[r]·rows[r] for each r, multiplied in double precision and rounded once; 0 in place of NaN.

    Args:
        rows: Axes: rows, values; neither is empty.
        factors: One for each row, in double precision.
    """
    count, size = rows.shape
    source, out = _with_adjacent_values(rows), torch.empty(count, size, dtype=rows.dtype, device=rows.device)
    blocks = -(-size // WIDE)
    with on_device_of(rows):
        scale_rows[(count * blocks,)](source, factors.contiguous(), out, size, source.stride(0), blocks, WIDE)
    return out


@scaled_rows.register_fake
def _(rows: Tensor, factors: Tensor) -> Tensor:
    return torch.empty(rows.shape, dtype=rows.dtype, device=rows.device)


def try_kernels(device: torch.device) -> None:
    """Compile and run each kernel once. Whatever the compiler raises goes to the caller; wrong numbers raise too."""
    tiny = 2.0**-20
    rows = torch.tensor([[1.0, tiny], [3.0, -4.0]], device=device)
    weights = torch.tensor([[tiny, 1.0]], dtype=torch.float64, device=device)
    found = [row_norms(rows, 2), row_norms(rows, 1), weighted_sums(rows[None], weights)[0]]
    found.append(scaled_rows(rows, weights[0])[1])
    expected = [[math.sqrt(1 + tiny**2), 5.0], [1 + tiny, 7.0], [3 + tiny, tiny**2 - 4]]  # exact in double precision
    expected.append([3.0, -4.0])
    if [values.tolist() for values in found] != expected:
        raise ArithmeticError("The kernels return other sums than those in double precision.")


def _add_values(rows: Tensor, out: Tensor, splits: int, *, squared: bool, root: bool) -> None:
    """Write the sum of each split of each row."""
    count, size = rows.shape
    width = NARROW if size <= NARROW else WIDE
    steps = -(-size // (width * splits))
    add_values[(count * splits,)](
        rows, out, size, rows.stride(0), splits, steps, squared, root, width, num_warps=1 if width == NARROW else 4
    )


def _add_rows(rows: Tensor, weights: Tensor | None) -> Tensor:
    """Return the sum of weighted rows; without weights, of rows as they are. Parts of a long sum are added up again."""
    sums, count, size = rows.shape
    high, wide = next((tile for most, tile in TILES.items() if size <= most), WIDE_TILE)
    blocks, steps = -(-size // wide), -(-count // high)
    splits = max(1, min(-(-BUSY // blocks), steps // STEPS_OF_SPLIT))
    parts = rows.new_empty(sums, splits, size, dtype=torch.float64)
    add_rows[(sums * splits * blocks,)](
        rows,
        rows if weights is None else weights,
        parts,
        count,
        size,
        rows.stride(0),
        rows.stride(1),
        blocks,
        splits,
        -(-steps // splits),
        weights is not None,
        high,
        wide,
        num_warps=4,
    )
    return parts[:, 0] if splits == 1 else _add_rows(parts, None)


def _with_adjacent_values(rows: Tensor) -> Tensor:
    """Return rows whose values lie next to each other in memory: a copy only where they don't."""
    return rows if rows.stride(-1) == 1 or rows.shape[-1] == 1 else rows.contiguous()


def on_device_of(value: Tensor) -> AbstractContextManager[object]:
    """Launch on the tensor's own device and its current stream."""
    return torch.cuda.device(value.device) if value.is_cuda else nullcontext()


# A tensor's address and strides must not choose the layout of a block, on which the order of a sum depends.
@triton.jit(do_not_specialize=["size", "stride", "splits", "steps"], do_not_specialize_on_alignment=["rows", "out"])
def add_values(
    rows,
    out,
    size,
    stride,  # from one row to the next
    splits,
    steps,  # of one split
    SQUARED: tl.constexpr,
    ROOT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out[row, split] = Σ over a split's values of value² or |value|, or the square root of this sum."""
    program = tl.program_id(0)
    source = rows + (program // splits).to(tl.int64) * stride
    first = (program % splits).to(tl.int64) * steps * BLOCK
    total = tl.zeros((BLOCK,), tl.float64)
    for step in range(steps):
        place = first + step * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(source + place, mask=place < size, other=0.0).to(tl.float64)
        if SQUARED:
            total += value * value
        else:
            total += tl.abs(value)
    found = tl.sum(total, axis=0)
    if ROOT:
        found = tl.sqrt(found)
    tl.store(out + program, found)


@triton.jit(
    do_not_specialize=["count", "size", "sum_stride", "row_stride", "blocks", "splits", "steps"],
    do_not_specialize_on_alignment=["rows", "weights", "out"],
)
def add_rows(
    rows,
    weights,
    out,
    count,  # rows of one sum
    size,
    sum_stride,  # from the first row of one sum to that of the next
    row_stride,
    blocks,  # of columns
    splits,
    steps,  # of one split
    WEIGHTED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """out[sum, split, j] = Σ over a split's rows e of weights[sum, e] · rows[sum, e, j]."""
    program = tl.program_id(0)
    part = (program // blocks).to(tl.int64)
    which = part // splits
    j = (program % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    source = rows + which * sum_stride
    total = tl.zeros((ROWS, COLUMNS), tl.float64)
    for step in range(steps):
        e = ((part % splits) * steps + step) * ROWS + tl.arange(0, ROWS)
        inside = (e < count)[:, None] & (j < size)[None, :]
        value = tl.load(source + (e * row_stride)[:, None] + j[None, :], mask=inside, other=0.0).to(tl.float64)
        if WEIGHTED:
            total += tl.load(weights + which * count + e, mask=e < count, other=0.0)[:, None] * value
        else:
            total += value
    tl.store(out + part * size + j, tl.sum(total, axis=0), mask=j < size)


@triton.jit(do_not_specialize=["size", "stride", "blocks"])
def scale_rows(
    rows,
    factors,
    out,
    size,
    stride,  # from one row to the next
    blocks,  # of columns
    BLOCK: tl.constexpr,
):
    """out[row, j] = factors[row] · rows[row, j], or 0 where that is NaN."""
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    j = (program % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(rows + row * stride + j, mask=j < size, other=0.0).to(tl.float64) * tl.load(factors + row)
    value = tl.where(value == value, value, 0.0)
    tl.store(out + row * size + j, value.to(tl.float32), mask=j < size)
