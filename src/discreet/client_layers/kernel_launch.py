"""Run Triton's kernels on tensors: layouts, sizes and grids. It imports Triton, so it is imported on a GPU only.

Everything is queued on the current stream, nothing waits for the device, and memory comes from torch's allocator, so a
CUDA graph can record it. Axes are those of `client_convolution.py`; images come back as views of channels-last memory.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from math import gcd
from typing import NamedTuple

import torch
from torch import Tensor

from discreet.client_layers.convolution_shape import ConvolutionSettings, Pair
from discreet.client_layers.kernel_blocks import Blocks, output_blocks, weight_blocks
from discreet.client_layers.precision import GradientPrecision
from discreet.client_layers.triton_kernels import add_parts, sum_over_positions, sum_over_taps

ADDED_AT_ONCE = 1024
BY_TRITON = {"float32": "ieee", "tf32": "tf32", "bf16": "ieee"}  # the last is unused: operands are cast


class Axis(NamedTuple):
    """One axis of an output, as a sum over some taps: those that reach one of every `step` pixels.

    Attributes:
        size: Outputs that are written.
        first: The pixel of the first tap for the first output.
        gap: Pixels between two taps.
        taps: Number of taps.
        tap: The kernel's first tap that is used.
        tap_step: Taps of the kernel between two that are used.
        pixel: The first output in the image that is written.
        pixel_step: Pixels between two outputs in it.
    """

    size: int
    first: int
    gap: int
    taps: int
    tap: int
    tap_step: int
    pixel: int
    pixel_step: int


def outputs(
    x: Tensor, w: Tensor, bias: Tensor | None, settings: ConvolutionSettings, blocks: Blocks | None = None
) -> Tensor:
    """Return x ∗ w + bias. Blocks are those of the table unless they are given."""
    kernel, size = (w.shape[3], w.shape[4]), (x.shape[3], x.shape[4])
    out = settings.output_size(size, kernel)
    high, wide = (
        Axis(out[axis], -settings.padding[axis], settings.dilation[axis], kernel[axis], 0, 1, 0, 1) for axis in (0, 1)
    )
    images, weights = _channels_last(x, settings.precision), _taps_first(w, settings.precision)
    y = x.new_empty(len(w), x.shape[1], *out, w.shape[1], dtype=torch.float32)
    rows = None if bias is None else bias.contiguous()
    with _on_device(x):
        _sum_over_taps(images, weights, rows, y, high, wide, settings.stride, settings, blocks)
    return y.permute(0, 1, 4, 2, 3)


def input_gradients(
    gy: Tensor, w: Tensor, settings: ConvolutionSettings, size: Pair, blocks: Blocks | None = None
) -> Tensor:
    """Return the gradient in x. With a stride, each class of pixels that the same taps reach is a sum of its own."""
    groups = settings.groups
    swapped = w.unflatten(1, (groups, -1)).transpose(2, 3).flatten(1, 2)  # a group's inputs become its outputs
    images, weights = _channels_last(gy, settings.precision), _taps_first(swapped, settings.precision)
    axes = [list(_gradient_axes(settings, size, (w.shape[3], w.shape[4]), axis)) for axis in (0, 1)]
    pairs = [(high, wide) for high in axes[0] for wide in axes[1]]
    reached = [pair for pair in pairs if all(axis.taps for axis in pair)]
    empty = w.new_empty if len(reached) == len(pairs) else w.new_zeros  # no output depends on the other pixels
    x = empty(len(w), gy.shape[1], *size, swapped.shape[1], dtype=torch.float32)
    with _on_device(gy):
        for high, wide in reached:
            _sum_over_taps(images, weights, None, x, high, wide, (1, 1), settings, blocks)
    return x.permute(0, 1, 4, 2, 3)


def weight_gradients(
    x: Tensor, gy: Tensor, settings: ConvolutionSettings, kernel: Pair, blocks: Blocks | None = None
) -> Tensor:
    """Return the gradient in w: parts of the sum first, then their sum in a fixed order."""
    groups, clients = settings.groups, len(x)
    inner, outer, taps = x.shape[2] // groups, gy.shape[2] // groups, kernel[0] * kernel[1]
    rows = gy.shape[1] * gy.shape[3] * gy.shape[4]
    tile = blocks or weight_blocks(rows, outer, inner, taps, settings.precision)
    images, gradients = _channels_last(x, settings.precision), _channels_last(gy, settings.precision)
    parts = x.new_empty(tile.splits, clients * groups, outer, taps, inner, dtype=torch.float32)
    blocks_n = -(-outer // tile.n)
    blocks_k = -(-taps * inner // tile.k) if tile.packed else taps * -(-inner // tile.k)
    with _on_device(x):
        sum_over_positions[(clients * groups * tile.splits * blocks_n * blocks_k,)](
            images,
            gradients,
            parts,
            blocks_n,
            blocks_k,
            rows,
            gy.shape[3],
            gy.shape[4],
            x.shape[3],
            x.shape[4],
            x.shape[2],
            inner,
            outer,
            groups,
            tile.splits,
            -(-rows // (tile.m * tile.splits)),
            clients * groups,
            *(-each for each in settings.padding),
            *settings.dilation,
            *settings.stride,
            *kernel,
            inner if tile.packed else 0,
            settings.precision == "bf16",
            BY_TRITON[settings.precision],
            tile.m,
            tile.n,
            tile.k,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
        if tile.splits == 1 and 1 in (taps, inner):
            return parts.view(clients, groups * outer, inner, *kernel)
        found = torch.empty_like(parts[0]).view(clients, groups * outer, inner, *kernel)
        width = min(ADDED_AT_ONCE, max(16, 1 << (inner * taps - 1).bit_length()))
        pieces, size = -(-inner * taps // width), found.numel()
        add_parts[(clients * groups * outer * pieces,)](parts, found, pieces, size, inner, tile.splits, taps, width)
    return found


def _sum_over_taps(
    images: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    out: Tensor,
    high: Axis,
    wide: Axis,
    step: Pair,
    settings: ConvolutionSettings,
    blocks: Blocks | None,
) -> None:
    """Write some pixels of `out`: a sum over the taps of both axes, for each client and group."""
    clients, per_client, image_high, image_wide, channels = images.shape
    groups, (outer, kernel_high, kernel_wide, inner) = settings.groups, weights.shape[1:]
    outer //= groups
    rows, taps = per_client * high.size * wide.size, high.taps * wide.taps
    tile = blocks or output_blocks(rows, outer, inner, taps, settings.precision)
    blocks_m, blocks_n = -(-rows // tile.m), -(-outer // tile.n)
    sum_over_taps[(clients * groups * blocks_m * blocks_n,)](
        images,
        weights,
        weights if bias is None else bias,
        out,
        blocks_m,
        blocks_n,
        rows,
        high.size,
        wide.size,
        image_high,
        image_wide,
        channels,
        inner,
        outer,
        groups,
        high.first,
        wide.first,
        high.gap,
        wide.gap,
        high.tap,
        wide.tap,
        high.tap_step,
        wide.tap_step,
        kernel_high,
        kernel_wide,
        out.shape[2],
        out.shape[3],
        high.pixel,
        wide.pixel,
        high.pixel_step,
        wide.pixel_step,
        *step,
        high.taps,
        wide.taps,
        inner if tile.packed else 0,
        bias is not None,
        settings.precision == "bf16",
        BY_TRITON[settings.precision],
        tile.m,
        tile.n,
        tile.k,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )


def _gradient_axes(settings: ConvolutionSettings, size: Pair, kernel: Pair, axis: int) -> Iterator[Axis]:
    """Yield the classes of an input's pixels along one axis, each as a sum over the taps that reach it.

    Tap k reaches pixel p from the output (p + padding − k·dilation)/stride, if that is a whole number. So every
    (stride / gcd(stride, dilation))-th tap reaches a pixel, from outputs that are equally far from each other.
    """
    stride, padding, dilation = settings.stride[axis], settings.padding[axis], settings.dilation[axis]
    tap_step = stride // gcd(stride, dilation)
    for pixel in range(min(stride, size[axis])):
        count = -(-(size[axis] - pixel) // stride)
        found = [tap for tap in range(min(tap_step, kernel[axis])) if (pixel + padding - tap * dilation) % stride == 0]
        if not found:
            yield Axis(count, 0, 0, 0, 0, 0, pixel, stride)
            continue
        taps = -(-(kernel[axis] - found[0]) // tap_step)
        first = (pixel + padding - found[0] * dilation) // stride
        yield Axis(count, first, -(tap_step * dilation // stride), taps, found[0], tap_step, pixel, stride)


def _channels_last(value: Tensor, precision: GradientPrecision) -> Tensor:
    """Return [g, b, h, w, channel] in contiguous memory, cast to bfloat16 if asked: a copy only where it is needed."""
    return _contiguous(value.permute(0, 1, 3, 4, 2), precision)


def _taps_first(w: Tensor, precision: GradientPrecision) -> Tensor:
    """Return [g, output, kh, kw, channel] in contiguous memory: tensor cores take TF32 by channels only."""
    return _contiguous(w.permute(0, 1, 3, 4, 2), precision)


def _contiguous(value: Tensor, precision: GradientPrecision) -> Tensor:
    if precision != "bf16" or value.dtype == torch.bfloat16:
        return value.contiguous()
    return torch.empty(value.shape, dtype=torch.bfloat16, device=value.device).copy_(value)  # both in one pass


def _on_device(value: Tensor) -> AbstractContextManager[object]:
    """Launch on the tensor's own device and its current stream."""
    return torch.cuda.device(value.device) if value.is_cuda else nullcontext()
