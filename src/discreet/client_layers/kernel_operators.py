"""Triton's kernels as operators of torch, so that a step can be traced and compiled with them inside.

The operators take contiguous tensors in the kernels' layout. The functions around them change layouts by operations of
torch, which a compiler fuses with what computes the operands. It imports Triton, so it is imported on a GPU only.

Axes of the functions are those of `client_convolution.py`; images come back as views of channels-last memory.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from discreet.client_layers import kernel_launch
from discreet.client_layers.convolution_shape import ConvolutionSettings, Pair
from discreet.client_layers.kernel_blocks import Blocks
from discreet.client_layers.precision import GradientPrecision


def outputs(
    x: Tensor, w: Tensor, bias: Tensor | None, settings: ConvolutionSettings, blocks: Blocks | None = None
) -> Tensor:
    """Return x ∗ w + bias. Blocks are those of the table unless they are given."""
    images, weights = _channels_last(x, settings.precision), _channels_last(w, settings.precision)
    rows = None if bias is None else bias.contiguous()
    return _channels_second(output_operator(images, weights, rows, *_pack(settings), blocks))


def input_gradients(
    gy: Tensor, w: Tensor, settings: ConvolutionSettings, size: Pair, blocks: Blocks | None = None
) -> Tensor:
    """Return the gradient in x."""
    swapped = w.unflatten(1, (settings.groups, -1)).transpose(2, 3).flatten(1, 2)  # a group's inputs are its outputs
    gradients, weights = _channels_last(gy, settings.precision), _channels_last(swapped, settings.precision)
    return _channels_second(input_gradient_operator(gradients, weights, size, *_pack(settings), blocks))


def weight_gradients(
    x: Tensor, gy: Tensor, settings: ConvolutionSettings, kernel: Pair, blocks: Blocks | None = None
) -> Tensor:
    """Return the gradient in w."""
    images, gradients = _channels_last(x, settings.precision), _channels_last(gy, settings.precision)
    return weight_gradient_operator(images, gradients, kernel, *_pack(settings), blocks)


@torch.library.custom_op("discreet::client_outputs", mutates_args=())
def output_operator(
    images: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    geometry: Sequence[int],
    groups: int,
    precision: str,
    blocks: Sequence[int] | None,
) -> Tensor:
    """Return `kernel_launch.outputs` of contiguous operands."""
    settings = _unpack(geometry, groups, precision)
    return kernel_launch.outputs(images.contiguous(), weights.contiguous(), bias, settings, _blocks(blocks))


@output_operator.register_fake
def _(
    images: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    geometry: Sequence[int],
    groups: int,
    precision: str,
    *others: Any,
) -> Tensor:
    settings = _unpack(geometry, groups, precision)
    size = settings.output_size((images.shape[2], images.shape[3]), (weights.shape[2], weights.shape[3]))
    return images.new_empty(len(weights), images.shape[1], *size, weights.shape[1], dtype=torch.float32)


@torch.library.custom_op("discreet::client_input_gradients", mutates_args=())
def input_gradient_operator(
    gradients: Tensor,
    weights: Tensor,
    size: Sequence[int],
    geometry: Sequence[int],
    groups: int,
    precision: str,
    blocks: Sequence[int] | None,
) -> Tensor:
    """Return `kernel_launch.input_gradients` of contiguous operands."""
    settings, (high, wide) = _unpack(geometry, groups, precision), size
    return kernel_launch.input_gradients(
        gradients.contiguous(), weights.contiguous(), settings, (high, wide), _blocks(blocks)
    )


@input_gradient_operator.register_fake
def _(gradients: Tensor, weights: Tensor, size: Sequence[int], *others: Any) -> Tensor:
    return gradients.new_empty(len(weights), gradients.shape[1], *size, weights.shape[1], dtype=torch.float32)


@torch.library.custom_op("discreet::client_weight_gradients", mutates_args=())
def weight_gradient_operator(
    images: Tensor,
    gradients: Tensor,
    kernel: Sequence[int],
    geometry: Sequence[int],
    groups: int,
    precision: str,
    blocks: Sequence[int] | None,
) -> Tensor:
    """Return `kernel_launch.weight_gradients` of contiguous operands."""
    settings, (high, wide) = _unpack(geometry, groups, precision), kernel
    return kernel_launch.weight_gradients(
        images.contiguous(), gradients.contiguous(), settings, (high, wide), _blocks(blocks)
    )


@weight_gradient_operator.register_fake
def _(
    images: Tensor, gradients: Tensor, kernel: Sequence[int], geometry: Sequence[int], groups: int, *others: Any
) -> Tensor:
    inner = images.shape[4] // groups
    return images.new_empty(len(images), gradients.shape[4], inner, *kernel, dtype=torch.float32)


def _pack(settings: ConvolutionSettings) -> tuple[list[int], int, str]:
    """Return the settings in types that an operator takes."""
    return [*settings.stride, *settings.padding, *settings.dilation], settings.groups, settings.precision


def _unpack(geometry: Sequence[int], groups: int, precision: str) -> ConvolutionSettings:
    stride, padding, dilation = ((geometry[at], geometry[at + 1]) for at in (0, 2, 4))
    return ConvolutionSettings(stride, padding, dilation, groups, cast(GradientPrecision, precision))


def _blocks(blocks: Sequence[int] | None) -> Blocks | None:
    if blocks is None:
        return None
    m, n, k, packed, *others = blocks
    return Blocks(m, n, k, bool(packed), *others)


def _channels_last(value: Tensor, precision: GradientPrecision) -> Tensor:
    """Return [g, b, h, w, channel] in contiguous memory, cast to bfloat16 if asked: a copy only where it is needed.

    Weights, too, have their channels last, since tensor cores take TF32 by channels only.
    """
    last = value.permute(0, 1, 3, 4, 2)
    if precision != "bf16" or value.dtype == torch.bfloat16:
        return last.contiguous()
    return torch.empty(last.shape, dtype=torch.bfloat16, device=value.device).copy_(last)  # both in one pass


def _channels_second(value: Tensor) -> Tensor:
    return value.permute(0, 1, 4, 2, 3)
