"""Replace convolutions and linear layers inside a step by those whose weights differ by client."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from discreet.client_layers import kernel_choice
from discreet.client_layers.client_convolution import ClientConvolution, InputGradient, WeightGradient, convolve
from discreet.client_layers.client_product import ClientProduct, linear
from discreet.client_layers.convolution_shape import ConvolutionSettings, Pair
from discreet.client_layers.precision import GradientPrecision, precision_in_force

OUR_FUNCTIONS = frozenset({ClientConvolution, InputGradient, WeightGradient, ClientProduct})  # with vmap rules of ours
PLAIN = (Tensor, nn.Parameter, FakeTensor)  # the last while a step is traced


class LayerMode(TorchFunctionMode):
    """A context in which a network's convolutions and linear layers run in the precision that is in force.

    Guarantee: a row of a result depends on the same row of the operands only, as in torch's own layers. What these
    kernels don't serve (other types, a network's own autocast, a shape that torch would refuse) is left to torch.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        layer, precision = LAYERS.get(func), precision_in_force()
        if layer is None or precision == "float32":
            return func(*args, **keywords)
        found = layer(precision, *args, **keywords)
        return func(*args, **keywords) if found is None else found


def convolution_2d(
    precision: GradientPrecision,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    """Convolve images, with the arguments of torch's function. None if this is left to torch."""
    if input.dim() == 3:  # one image without a batch
        single = convolution_2d(precision, input[None], weight, bias, stride, padding, dilation, groups)
        return None if single is None else single[0]
    if not _is_served(input, weight, bias) or input.dim() != 4 or weight.dim() != 4:
        return None
    kernel, steps, gaps = (weight.shape[2], weight.shape[3]), _pair(stride), _pair(dilation)
    if isinstance(padding, str):
        whole = tuple(gap * (taps - 1) if padding == "same" else 0 for gap, taps in zip(gaps, kernel, strict=True))
        if padding not in ("same", "valid") or (padding == "same" and steps != (1, 1)):
            return None
        if any(each % 2 for each in whole):  # torch, too, puts the odd row and column behind
            input = functional.pad(input, (0, whole[1] % 2, 0, whole[0] % 2))
        padding = tuple(each // 2 for each in whole)
    settings = ConvolutionSettings(steps, _pair(padding), gaps, groups, precision)
    if not _fits(input, weight, settings, kernel) or not kernel_choice.is_worthwhile(weight, groups):
        return None
    return convolve(input[None], weight[None], None if bias is None else bias[None], settings)[0]


def convolution_1d(
    precision: GradientPrecision,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    """Convolve sequences as images of height 1, with the arguments of torch's function."""
    if weight.dim() != 3 or input.dim() not in (2, 3):
        return None
    wide = padding if isinstance(padding, str) else (0, _single(padding))
    options = ((1, _single(stride)), wide, (1, _single(dilation)), groups)
    found = convolution_2d(precision, input.unsqueeze(-2), weight.unsqueeze(-2), bias, *options)
    return None if found is None else found.squeeze(-2)


def linear_layer(
    precision: GradientPrecision, input: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor | None:
    """Multiply by a weight, with the arguments of torch's function. In TF32 torch's own product does it."""
    if precision != "bf16" or not _is_served(input, weight, bias) or weight.dim() != 2 or not input.dim():
        return None
    return linear(input, weight, bias) if input.shape[-1] == weight.shape[1] else None


def example_weight_gradients(inputs: Tensor, outer: Tensor, stride: Any, padding: Any, kernel: Any) -> Tensor | None:
    """Return the gradient of each example in the weight of a convolution, of which `outer` are the outputs' gradients.

    None in float32, or where the kernels don't serve: the caller then forms the products itself.
    """
    precision = precision_in_force()
    if precision == "float32" or not _is_served(inputs, outer, None):
        return None
    settings = ConvolutionSettings(_pair(stride), _pair(padding), (1, 1), 1, precision)
    found: Tensor = WeightGradient.apply(inputs[:, None], outer[:, None], settings, _pair(kernel))
    return found


def _is_served(input: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Return whether these are plain tensors of float32 on a device that has the kernels."""
    values = [value for value in (input, weight, bias) if value is not None]
    return (
        all(type(value) in PLAIN and value.dtype == torch.float32 and value.numel() > 0 for value in values)
        and all(kernel_choice.is_on_device(value) for value in values)
        and not torch.is_autocast_enabled(input.device.type)
    )


def _fits(input: Tensor, weight: Tensor, settings: ConvolutionSettings, kernel: Pair) -> bool:
    """Return whether the shapes fit together; torch says in words what does not."""
    high, wide = settings.output_size((input.shape[2], input.shape[3]), kernel)
    positive = (*settings.stride, *settings.dilation, settings.groups, high, wide)
    return (
        all(value > 0 for value in positive)
        and all(value >= 0 for value in settings.padding)
        and weight.shape[1] * settings.groups == input.shape[1]
        and weight.shape[0] % settings.groups == 0
    )


def _pair(value: Any) -> Pair:
    """Return the two numbers of a setting that may be one number for both."""
    first, *rest = value if isinstance(value, tuple | list) else (value,)
    return int(first), int(rest[0] if rest else first)


def _single(value: Any) -> int:
    return int(value[0] if isinstance(value, tuple | list) else value)


LAYERS: dict[Any, Callable[..., Tensor | None]] = {
    functional.conv1d: convolution_1d,
    functional.conv2d: convolution_2d,
    functional.linear: linear_layer,
}
