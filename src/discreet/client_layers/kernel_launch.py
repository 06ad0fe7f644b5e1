"""Run Triton's kernels on tensors: sizes and grids. It imports Triton, so it is imported on a GPU only.

Everything is queued on the current stream, nothing waits for the device, and memory comes from torch's allocator, so a
CUDA graph can record it. Operands are contiguous: images[g, b, h, w, channel], weights[g, output, kh, kw, channel].
"""

from collections.abc import Iterator
from math import gcd
from typing import NamedTuple

import torch
from torch import Tensor

from discreet.client_layers.convolution_shape import ConvolutionSettings, Pair
from discreet.client_layers.kernel_blocks import Blocks, output_blocks, weight_blocks
from discreet.client_layers.triton_kernels import add_parts, sum_over_positions, sum_over_taps
from discreet.double_kernels import on_device_of

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
    images: Tensor, weights: Tensor, bias: Tensor | None, settings: ConvolutionSettings, blocks: Blocks | None
) -> Tensor:
    """Return y[g, b, h, w, output] = x ∗ w + bias."""
    kernel, size = (weights.shape[2], weights.shape[3]), (images.shape[2], images.shape[3])
    out = settings.output_size(size, kernel)
    high, wide = (
        Axis(out[axis], -settings.padding[axis], settings.dilation[axis], kernel[axis], 0, 1, 0, 1) for axis in (0, 1)
    )
    y = images.new_empty(len(weights), images.shape[1], *out, weights.shape[1], dtype=torch.float32)
    with on_device_of(images):
        _sum_over_taps(images, weights, bias, y, high, wide, settings.stride, settings, blocks)
    return y


def input_gradients(
    gradients: Tensor, weights: Tensor, settings: ConvolutionSettings, size: Pair, blocks: Blocks | None
) -> Tensor:
    """Return the gradient in x[g, b, h, w, channel], for weights[g, channel, kh, kw, output].

    With a stride, each class of pixels that the same taps reach is a sum of its own.
    """
    kernel = (weights.shape[2], weights.shape[3])
    axes = [list(_gradient_axes(settings, size, kernel, axis)) for axis in (0, 1)]
    pairs = [(high, wide) for high in axes[0] for wide in axes[1]]
    reached = [pair for pair in pairs if all(axis.taps for axis in pair)]
    empty = weights.new_empty if len(reached) == len(pairs) else weights.new_zeros  # nothing reaches other pixels
    x = empty(len(weights), gradients.shape[1], *size, weights.shape[1], dtype=torch.float32)
    with on_device_of(gradients):
        for high, wide in reached:
            _sum_over_taps(gradients, weights, None, x, high, wide, (1, 1), settings, blocks)
    return x


def weight_gradients(
    images: Tensor, gradients: Tensor, settings: ConvolutionSettings, kernel: Pair, blocks: Blocks | None
) -> Tensor:
    """Return the gradient in w[g, output, channel, kh, kw]: parts of the sum first, then their sum in a fixed order."""
    groups, clients, taps = settings.groups, len(images), kernel[0] * kernel[1]
    inner, outer = images.shape[4] // groups, gradients.shape[4] // groups
    _, per_client, out_high, out_wide, _ = gradients.shape
    rows = per_client * out_high * out_wide
    tile = blocks or weight_blocks(rows, outer, inner, taps, settings.precision)
    parts = images.new_empty(tile.splits, clients * groups, outer, taps, inner, dtype=torch.float32)
    blocks_n = -(-outer // tile.n)
    blocks_k = -(-taps * inner // tile.k) if tile.packed else taps * -(-inner // tile.k)
    with on_device_of(images):
        sum_over_positions[(clients * groups * tile.splits * blocks_n * blocks_k,)](
            images,
            gradients,
            parts,
            blocks_n,
            blocks_k,
            rows,
            out_high,
            out_wide,
            images.shape[2],
            images.shape[3],
            images.shape[4],
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
