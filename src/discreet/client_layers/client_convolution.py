"""A convolution whose weights differ by client, with its two gradients, for torch.func's grad and vmap in any order.

All three are bilinear, and the derivative of each is made of the other two. Axes: x[g, b, channel, h, w],
w[g, output, channel, kh, kw], y[g, b, output, h, w], where g numbers the weights and b the images that share them.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from discreet.client_layers import batched_convolution
from discreet.client_layers.convolution_shape import ConvolutionSettings, Pair

Dims = tuple[int | None, ...]


class ClientConvolution(Function):
    """y = x ∗ w + bias, where the bias, if there is one, has a row for each g."""

    @staticmethod
    def forward(x: Tensor, w: Tensor, bias: Tensor | None, settings: ConvolutionSettings) -> Tensor:
        return batched_convolution.outputs(x, w, bias, settings)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, w, bias, ctx.settings = inputs
        ctx.has_bias = bias is not None
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x, w), (gy,) = ctx.saved_tensors, gradients
        for_x, for_w, for_bias, _ = ctx.needs_input_grad
        shared = batched_convolution.convert_once(gy, ctx.settings) if for_x and for_w else gy
        return (
            InputGradient.apply(shared, w, ctx.settings, tuple(x.shape[-2:])) if for_x else None,
            WeightGradient.apply(x, shared, ctx.settings, tuple(w.shape[-2:])) if for_w else None,
            gy.sum((1, 3, 4)) if for_bias else None,
            None,
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        (x, w), (dx, dw, bias, _) = ctx.saved_tensors, tangents
        dx, dw = (torch.zeros_like(x) if dx is None else dx), (torch.zeros_like(w) if dw is None else dw)
        moved: Tensor = convolve(dx, w, None, ctx.settings) + convolve(x, dw, None, ctx.settings)
        return moved if bias is None else moved + bias[:, None, :, None, None]

    @staticmethod
    def vmap(info: Any, in_dims: Dims, x: Tensor, w: Tensor, bias: Tensor | None, settings: Any) -> tuple[Tensor, int]:
        if bias is not None and in_dims[2] is not None and in_dims[1] is None:  # a trained bias of frozen weights
            options = (in_dims[0], None, None, None)
            y, at = (
                (convolve(x, w, None, settings), None)
                if in_dims[0] is None
                else ClientConvolution.vmap(info, options, x, w, None, settings)
            )
            found = y[None] if at is None else y.movedim(at, 0)
            return found + bias.movedim(in_dims[2], 0)[:, :, None, :, None, None], 0
        if in_dims[1] is None:
            assert in_dims[0] is not None
            y = convolve(join_images(x, in_dims[0]), w, bias, settings)
            return y.unflatten(1, (info.batch_size, -1)), 1
        rows = None if bias is None else join_rows(bias, in_dims[2], info.batch_size)
        y = convolve(
            join_rows(x, in_dims[0], info.batch_size), join_rows(w, in_dims[1], info.batch_size), rows, settings
        )
        return y.unflatten(0, (info.batch_size, -1)), 0


class InputGradient(Function):
    """The gradient of ⟨gy, x ∗ w⟩ in x, for inputs of this height and width."""

    @staticmethod
    def forward(gy: Tensor, w: Tensor, settings: ConvolutionSettings, size: Pair) -> Tensor:
        return batched_convolution.input_gradients(gy, w, settings, size)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        gy, w, ctx.settings, ctx.size = inputs
        ctx.save_for_backward(gy, w)
        ctx.save_for_forward(gy, w)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gy, w), (x,) = ctx.saved_tensors, gradients
        return (
            convolve(x, w, None, ctx.settings) if ctx.needs_input_grad[0] else None,
            WeightGradient.apply(x, gy, ctx.settings, tuple(w.shape[-2:])) if ctx.needs_input_grad[1] else None,
            None,
            None,
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        (gy, w), (dgy, dw, *_) = ctx.saved_tensors, tangents
        dgy, dw = (torch.zeros_like(gy) if dgy is None else dgy), (torch.zeros_like(w) if dw is None else dw)
        found: Tensor = InputGradient.apply(dgy, w, ctx.settings, ctx.size)
        return found + InputGradient.apply(gy, dw, ctx.settings, ctx.size)

    @staticmethod
    def vmap(info: Any, in_dims: Any, gy: Tensor, w: Tensor, settings: Any, size: Any) -> tuple[Tensor, int]:
        if in_dims[1] is None:
            found: Tensor = InputGradient.apply(join_images(gy, in_dims[0]), w, settings, size)
            return found.unflatten(1, (info.batch_size, -1)), 1
        rows = (join_rows(value, at, info.batch_size) for value, at in ((gy, in_dims[0]), (w, in_dims[1])))
        found = InputGradient.apply(*rows, settings, size)
        return found.unflatten(0, (info.batch_size, -1)), 0


class WeightGradient(Function):
    """The gradient of ⟨gy, x ∗ w⟩ in w, for kernels of this height and width."""

    @staticmethod
    def forward(x: Tensor, gy: Tensor, settings: ConvolutionSettings, kernel: Pair) -> Tensor:
        return batched_convolution.weight_gradients(x, gy, settings, kernel)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, gy, ctx.settings, ctx.kernel = inputs
        ctx.save_for_backward(x, gy)
        ctx.save_for_forward(x, gy)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x, gy), (w,) = ctx.saved_tensors, gradients
        return (
            InputGradient.apply(gy, w, ctx.settings, tuple(x.shape[-2:])) if ctx.needs_input_grad[0] else None,
            convolve(x, w, None, ctx.settings) if ctx.needs_input_grad[1] else None,
            None,
            None,
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        (x, gy), (dx, dgy, *_) = ctx.saved_tensors, tangents
        dx, dgy = (torch.zeros_like(x) if dx is None else dx), (torch.zeros_like(gy) if dgy is None else dgy)
        found: Tensor = WeightGradient.apply(dx, gy, ctx.settings, ctx.kernel)
        return found + WeightGradient.apply(x, dgy, ctx.settings, ctx.kernel)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, gy: Tensor, settings: Any, kernel: Any) -> tuple[Tensor, int]:
        rows = (join_rows(value, at, info.batch_size) for value, at in ((x, in_dims[0]), (gy, in_dims[1])))
        found: Tensor = WeightGradient.apply(*rows, settings, kernel)
        return found.unflatten(0, (info.batch_size, -1)), 0


def convolve(x: Tensor, w: Tensor, bias: Tensor | None, settings: ConvolutionSettings) -> Tensor:
    """Return x ∗ w + bias, differentiable."""
    y: Tensor = ClientConvolution.apply(x, w, bias, settings)
    return y


def join_rows(value: Tensor, at: int | None, count: int) -> Tensor:
    """Join the axis of vmap with g; a tensor without this axis is repeated."""
    rows = value.expand(count, *value.shape) if at is None else value.movedim(at, 0)
    return rows.flatten(0, 1)


def join_images(value: Tensor, at: int) -> Tensor:
    """Join the axis of vmap with b: these images share their weights."""
    return value.movedim(at, 1).flatten(1, 2)
