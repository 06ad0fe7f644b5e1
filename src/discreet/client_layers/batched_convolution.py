"""Many convolutions at once, one for each g: by Triton's kernels where they serve, else by torch's own.

x[g, b, channel, h, w], w[g, output, channel, kh, kw], y[g, b, output, h, w].
"""

import torch
from torch import Tensor
from torch.nn import functional

from discreet.client_layers import kernel_choice
from discreet.client_layers.convolution_shape import ConvolutionSettings, Pair


def outputs(x: Tensor, w: Tensor, bias: Tensor | None, settings: ConvolutionSettings) -> Tensor:
    """Return x ∗ w + bias. One w for all images in float32 or TF32 is an ordinary convolution, which cuDNN has."""
    if kernel_choice.serves(x, w, settings):
        from discreet.client_layers import kernel_operators

        return kernel_operators.outputs(x, w, bias, settings)
    return torch_outputs(_round(x, settings), _round(w, settings), bias, settings)


def input_gradients(gy: Tensor, w: Tensor, settings: ConvolutionSettings, size: Pair) -> Tensor:
    """Return the gradient in x of ⟨gy, x ∗ w⟩."""
    if kernel_choice.serves(gy, w, settings):
        from discreet.client_layers import kernel_operators

        return kernel_operators.input_gradients(gy, w, settings, size)
    return torch_input_gradients(_round(gy, settings), _round(w, settings), settings, size)


def weight_gradients(x: Tensor, gy: Tensor, settings: ConvolutionSettings, kernel: Pair) -> Tensor:
    """Return the gradient in w of ⟨gy, x ∗ w⟩."""
    if kernel_choice.serves(x, gy, settings):
        from discreet.client_layers import kernel_operators

        return kernel_operators.weight_gradients(x, gy, settings, kernel)
    return torch_weight_gradients(_round(x, settings), _round(gy, settings), settings, kernel)


def convert_once(gy: Tensor, settings: ConvolutionSettings) -> Tensor:
    """Return gradients of outputs in the layout and type of the kernels, where two of them read the same."""
    if settings.precision == "float32":
        return gy
    last = gy.permute(0, 1, 3, 4, 2)
    if settings.precision == "bf16":
        return last.to(torch.bfloat16, memory_format=torch.contiguous_format).permute(0, 1, 4, 2, 3)
    return last.contiguous().permute(0, 1, 4, 2, 3)


def torch_outputs(x: Tensor, w: Tensor, bias: Tensor | None, settings: ConvolutionSettings) -> Tensor:
    """Return x ∗ w + bias by torch's convolution with groups, as vmap computes it."""
    flat = None if bias is None else bias.flatten()
    options = (settings.stride, settings.padding, settings.dilation, len(w) * settings.groups)
    return _split_channels(functional.conv2d(_join_channels(x), w.flatten(0, 1), flat, *options), len(w))


def torch_input_gradients(gy: Tensor, w: Tensor, settings: ConvolutionSettings, size: Pair) -> Tensor:
    """Return the gradient in x by torch's convolution with groups."""
    shape = (gy.shape[1], len(w) * w.shape[2] * settings.groups, *size)
    like = gy.new_empty(1).expand(shape)
    found, _, _ = _backward(_join_channels(gy), like, w.flatten(0, 1), settings, len(w), (True, False, False))
    return _split_channels(found, len(w))


def torch_weight_gradients(x: Tensor, gy: Tensor, settings: ConvolutionSettings, kernel: Pair) -> Tensor:
    """Return the gradient in w by torch's convolution with groups."""
    shape = (len(gy) * gy.shape[2], x.shape[2] // settings.groups, *kernel)
    like = gy.new_empty(1).expand(shape)
    found = _backward(_join_channels(gy), _join_channels(x), like, settings, len(x), (False, True, False))[1]
    return found.unflatten(0, (len(gy), -1))


def _backward(
    gy: Tensor, x: Tensor, w: Tensor, settings: ConvolutionSettings, rows: int, wanted: tuple[bool, bool, bool]
) -> tuple[Tensor, Tensor, Tensor]:
    options = (settings.stride, settings.padding, settings.dilation, False, (0, 0), rows * settings.groups)
    found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(gy, x, w, None, *options, wanted)
    return found


def _round(value: Tensor, settings: ConvolutionSettings) -> Tensor:
    """Round an operand to bfloat16 if asked. TF32, which torch's convolution may use, keeps all its digits."""
    return value.bfloat16().float() if settings.precision == "bf16" else value


def _join_channels(value: Tensor) -> Tensor:
    """[g, b, channel, h, w] becomes [b, (g, channel), h, w]."""
    return value.transpose(0, 1).flatten(1, 2)


def _split_channels(value: Tensor, rows: int) -> Tensor:
    return value.unflatten(1, (rows, -1)).transpose(0, 1)
