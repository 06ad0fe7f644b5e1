"""Per-example gradients of single layers, from a layer's inputs and the gradients of its outputs.

The gradient of a weight is a product of the two. Autograd would sum it over examples, and vmap would compute each
example by itself; forming the products directly costs no more than an ordinary backward pass (Goodfellow 2015).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from discreet.algorithms.training.gradient_records import DenseGradient, Gradient, OuterProductGradient
from discreet.algorithms.training.layer_recording import changed_path
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.position_sums import PositionSumGradient, takes_less_as_factors
from discreet.algorithms.training.shipped_modules import is_shipped_layer
from discreet.algorithms.training.word_gradients import embedding_gradients
from discreet.client_layers.layer_mode import example_weight_gradients
from discreet.params import Params

CPU_ROWS, GPU_ROWS = 2**22, 2**27  # values of patches that are copied at once

LayerGradients = Callable[[nn.Module, Tensor, Tensor], dict[str, Gradient]]


def linear_gradients(layer: nn.Module, inputs: Tensor, outer: Tensor) -> dict[str, Gradient]:
    """Return g aᵀ for each example, summed over axes between example and features, such as a sequence."""
    if inputs.dim() == 2:
        return {"weight": OuterProductGradient(outer, inputs), "bias": DenseGradient(outer)}
    inputs, outer = inputs.flatten(1, -2), outer.flatten(1, -2)
    shape = torch.Size((outer.shape[2], inputs.shape[2]))
    return {"weight": sum_over_positions(outer, inputs, keep_rows, shape), "bias": DenseGradient(outer.sum(dim=1))}


def convolution_gradients(layer: nn.Module, inputs: Tensor, outer: Tensor) -> dict[str, Gradient]:
    """Return g Uᵀ for each example, where U are the patches under the kernel.

    On tensor cores a kernel reads the patches where they are, and no copy is made.
    """
    assert isinstance(layer, nn.Conv1d | nn.Conv2d)

    def form() -> Tensor | None:
        if isinstance(layer, nn.Conv1d):
            return None
        return example_weight_gradients(inputs, outer, layer.stride, layer.padding, layer.kernel_size)

    flat = outer.flatten(2)
    rows = partial(patches, layer)
    return {
        "weight": sum_over_positions(flat.transpose(1, 2), inputs, rows, layer.weight.shape, form),
        "bias": DenseGradient(flat.sum(dim=2)),
    }


def patches(layer: nn.Conv1d | nn.Conv2d, inputs: Tensor) -> Tensor:
    """Return what is under the kernel at each position: a strided view, copied once."""
    assert isinstance(layer.padding, tuple)
    margins = [side for margin in reversed(layer.padding) for side in (margin, margin)]
    found = nn.functional.pad(inputs.contiguous(), margins) if any(margins) else inputs.contiguous()
    axes = len(layer.kernel_size)
    for axis, (size, stride) in enumerate(zip(layer.kernel_size, layer.stride, strict=True)):
        found = found.unfold(2 + axis, size, stride)
    positions_first = (0, *range(2, 2 + axes), 1, *range(2 + axes, 2 + 2 * axes))
    return found.permute(positions_first).reshape(len(inputs), -1, layer.weight[0].numel())


def keep_rows(inputs: Tensor) -> Tensor:
    """Return the inputs of a linear layer, which are its rows."""
    return inputs


def sum_over_positions(
    outer: Tensor,
    inputs: Tensor,
    rows: Callable[[Tensor], Tensor],
    shape: torch.Size,
    form: Callable[[], Tensor | None] = lambda: None,
) -> Gradient:
    """Return Σ_t g_t a_tᵀ for each example: as factors if that takes less, else formed.

    Args:
        outer: The g_t. Axes: examples, positions, outputs.
        inputs: What the a_t are computed from.
        rows: Returns the a_t of inputs. Axes: examples, positions, values.
        shape: Shape of the parameter.
        form: Forms the gradients without the a_t; None if it can't.
    """
    values = shape[1:].numel()
    if takes_less_as_factors(outer.shape[1], outer.shape[2], values, inputs[0].numel()):
        return PositionSumGradient(outer, inputs, rows, shape)
    if (without_rows := form()) is not None:
        return DenseGradient(without_rows)
    examples = max(1, (GPU_ROWS if outer.is_cuda else CPU_ROWS) // (outer.shape[1] * values))
    pieces = zip(torch.split(outer, examples), torch.split(inputs, examples), strict=True)
    formed = [some.transpose(1, 2) @ rows(beside) for some, beside in pieces]
    return DenseGradient((formed[0] if len(formed) == 1 else torch.cat(formed)).reshape(-1, *shape))


def normalisation_gradients(layer: nn.Module, inputs: Tensor, outer: Tensor) -> dict[str, Gradient]:
    """Return the normalised input times g for each example, summed over positions."""
    if isinstance(layer, nn.GroupNorm):
        normal = nn.functional.group_norm(inputs, layer.num_groups, eps=layer.eps)
        positions = tuple(range(2, inputs.dim()))
    else:
        assert isinstance(layer, nn.LayerNorm)
        normal = nn.functional.layer_norm(inputs, layer.normalized_shape, eps=layer.eps)
        positions = tuple(range(1, inputs.dim() - len(layer.normalized_shape)))
    product = normal * outer
    if not positions:
        return {"weight": DenseGradient(product), "bias": DenseGradient(outer)}
    return {"weight": DenseGradient(product.sum(positions)), "bias": DenseGradient(outer.sum(positions))}


@dataclass(frozen=True)
class Rule:
    """How the per-example gradients of one class of layers are computed, and for which settings of the layer.

    Guarantee: a layer with a setting that is not named here, or with a value that fails its check, is never given to
    `gradients`. It goes by vmap, which is slower and right.

    Attributes:
        gradients: The function from layer, inputs and gradients of the outputs to gradients of the parameters.
        settings: The check that a value must pass, for each setting that torch lists in the class's `__constants__`.
    """

    gradients: LayerGradients
    settings: Mapping[str, Callable[[Any], bool]]

    def supports(self, layer: nn.Module) -> bool:
        """Return whether `gradients` are right for this layer."""
        names = getattr(type(layer), "__constants__", None)
        return names is not None and all(
            name in self.settings and self.settings[name](getattr(layer, name)) for name in names
        )


def any_value(value: object) -> bool:
    """Accept every value of a setting: the rule reads it, or the gradients don't depend on it."""
    return True


def equals(allowed: object) -> Callable[[Any], bool]:
    """Return a check that accepts one value of a setting."""
    return lambda value: bool(value == allowed)


CONVOLUTION: Mapping[str, Callable[[Any], bool]] = {
    "in_channels": any_value,
    "out_channels": any_value,
    "kernel_size": any_value,
    "stride": any_value,
    "padding": lambda padding: isinstance(padding, tuple),  # "same" and "valid" are words
    "padding_mode": equals("zeros"),
    "output_padding": lambda padding: not any(padding),
    "dilation": lambda dilation: set(dilation) == {1},
    "groups": equals(1),
}
LAYER_GRADIENTS: Mapping[type[nn.Module], Rule] = {
    nn.Linear: Rule(linear_gradients, {"in_features": any_value, "out_features": any_value}),
    nn.Conv1d: Rule(convolution_gradients, CONVOLUTION),
    nn.Conv2d: Rule(convolution_gradients, CONVOLUTION),
    nn.Embedding: Rule(
        embedding_gradients,
        {
            "num_embeddings": any_value,
            "embedding_dim": any_value,
            "padding_idx": any_value,
            "max_norm": equals(None),  # or it changes its weights in place
            "norm_type": any_value,
            "scale_grad_by_freq": equals(False),  # or it divides by how often a word is in the batch
            "sparse": equals(False),
        },
    ),
    nn.GroupNorm: Rule(
        normalisation_gradients,
        {"num_groups": any_value, "num_channels": any_value, "eps": any_value, "affine": any_value},
    ),
    nn.LayerNorm: Rule(
        normalisation_gradients, {"normalized_shape": any_value, "eps": any_value, "elementwise_affine": any_value}
    ),
}


def supported_layers(loss: object, params: Params) -> dict[str, nn.Module] | None:
    """Return the layers that hold all of `params`, by name; None if a parameter is in an unsupported layer."""
    if not isinstance(loss, ModuleLoss):
        return None
    return _find_supported_layers(loss.module, frozenset(params))


@lru_cache(maxsize=64)
def _find_supported_layers(module: nn.Module, names: frozenset[str]) -> dict[str, nn.Module] | None:
    found = {
        name: layer
        for name, layer in module.named_modules()
        if type(layer) in LAYER_GRADIENTS and LAYER_GRADIENTS[type(layer)].supports(layer) and is_shipped_layer(layer)
    }
    held = {f"{name}.{own}" if name else own for name, layer in found.items() for own, _ in layer.named_parameters()}
    tied = len({id(value) for value in module.parameters()}) != len(
        list(module.named_parameters(remove_duplicate=False))
    )
    if tied or not names <= held:
        return None
    return {
        name: layer
        for name, layer in found.items()
        if any(each.startswith(f"{name}." if name else "") for each in names)
    }


def example_gradients(
    layers: dict[str, nn.Module], names: frozenset[str], seen: Params, outer: Params
) -> dict[str, Gradient]:
    """Return the gradients of every example for the parameters in `names`. Empties `seen` and `outer`."""
    found = {}
    for name, layer in layers.items():
        if name not in seen:
            raise changed_path(name)
        inputs, gradient = seen.pop(name), outer.pop(name)  # what no record keeps is freed
        if inputs.is_floating_point():
            inputs = inputs.to(gradient.dtype)  # fewer digits, if the network has an autocast of its own
        for own, value in LAYER_GRADIENTS[type(layer)].gradients(layer, inputs, gradient).items():
            full = f"{name}.{own}" if name else own
            if full in names:
                found[full] = value
    return found
