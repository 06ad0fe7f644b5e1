"""Per-example gradients of single layers, from a layer's inputs and the gradients of its outputs.

The gradient of a weight is a product of the two. Autograd would sum it over examples, and vmap would compute each
example by itself; forming the products directly costs no more than an ordinary backward pass (Goodfellow 2015).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from torch import Tensor, nn

from discreet.algorithms.training.gradient_records import DenseGradient, Gradient, OuterProductGradient
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.shipped_modules import is_shipped_layer
from discreet.params import Params

LayerGradients = Callable[[nn.Module, Tensor, Tensor], dict[str, Gradient]]


def linear_gradients(layer: nn.Module, inputs: Tensor, outer: Tensor) -> dict[str, Gradient]:
    """Return g aᵀ for each example, summed over axes between example and features, such as a sequence."""
    if inputs.dim() == 2:
        return {"weight": OuterProductGradient(outer, inputs), "bias": DenseGradient(outer)}
    inputs, outer = inputs.flatten(1, -2), outer.flatten(1, -2)
    return {"weight": DenseGradient(outer.transpose(1, 2) @ inputs), "bias": DenseGradient(outer.sum(dim=1))}


def convolution_gradients(layer: nn.Module, inputs: Tensor, outer: Tensor) -> dict[str, Gradient]:
    """Return g Uᵀ for each example, where U are the patches under the kernel: a strided view, copied once."""
    assert isinstance(layer, nn.Conv2d)
    assert isinstance(layer.padding, tuple)
    (high, wide), (down, right) = layer.kernel_size, layer.padding
    padded = (
        nn.functional.pad(inputs.contiguous(), (right, right, down, down)) if down or right else inputs.contiguous()
    )
    patches = padded.unfold(2, high, layer.stride[0]).unfold(3, wide, layer.stride[1])
    rows = patches.permute(0, 2, 3, 1, 4, 5).reshape(len(inputs), -1, layer.weight[0].numel())
    flat = outer.flatten(2)
    return {
        "weight": DenseGradient((flat @ rows).reshape(-1, *layer.weight.shape)),
        "bias": DenseGradient(flat.sum(dim=2)),
    }


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


LAYER_GRADIENTS: Mapping[type[nn.Module], Rule] = {
    nn.Linear: Rule(linear_gradients, {"in_features": any_value, "out_features": any_value}),
    nn.Conv2d: Rule(
        convolution_gradients,
        {
            "in_channels": any_value,
            "out_channels": any_value,
            "kernel_size": any_value,
            "stride": any_value,
            "padding": lambda padding: isinstance(padding, tuple),  # "same" and "valid" are words
            "padding_mode": equals("zeros"),
            "output_padding": equals((0, 0)),
            "dilation": equals((1, 1)),
            "groups": equals(1),
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
    """Return the gradients of every example for the parameters in `names`."""
    found = {}
    for name, layer in layers.items():
        inputs = seen[name].to(outer[name].dtype)  # fewer digits, if the network has an autocast of its own
        for own, value in LAYER_GRADIENTS[type(layer)].gradients(layer, inputs, outer[name]).items():
            full = f"{name}.{own}" if name else own
            if full in names:
                found[full] = value
    return found
