"""Per-example gradients of single layers, from what went in and the gradient of what came out.

The gradient of a weight is a product of the two; autograd would sum it over examples, and vmap would compute each
example's by itself. Forming the products directly costs no more than an ordinary backward pass (Goodfellow 2015).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor, nn

from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.shipped_modules import Tap, is_shipped_layer
from discreet.params import Params
from discreet.randomness.streams import seed_torch


class Gradient(Protocol):
    """One parameter's gradient for each of n examples."""

    def squared_norms(self) -> Tensor:
        """Each example's squared norm."""

    def weighted_sum(self, weights: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Σ_e weights[c, e]·gradient of example (c, e), for weights of c clients with e examples each.

        Added up in `dtype`; by default in the gradients' own.
        """


@dataclass(frozen=True)
class DenseGradient:
    """As it is, an example a row."""

    value: Tensor

    def squared_norms(self) -> Tensor:
        found: Tensor = torch.linalg.vector_norm(self.value.reshape(len(self.value), -1), dim=1)
        return found.double().square()

    def weighted_sum(self, weights: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        clients, width = weights.shape
        rows = _zero_nonfinite(self.value).reshape(clients, width, -1)
        if dtype is not None:  # without a copy of all gradients in it
            weighted = rows * weights.to(rows.dtype)[..., None]
            return weighted.sum(dim=1, dtype=dtype).reshape(clients, *self.value.shape[1:])
        return (weights.to(rows.dtype)[:, None] @ rows)[:, 0].reshape(clients, *self.value.shape[1:])


@dataclass(frozen=True)
class OuterProductGradient:
    """The outer product of two vectors an example, never formed: its norm is the product of their norms.

    In doubles: a small one's squares would vanish in single precision, and a large one beside it escape the clip.
    """

    left: Tensor
    right: Tensor

    def squared_norms(self) -> Tensor:
        left, right = (torch.linalg.vector_norm(each, dim=1, dtype=torch.float64) for each in (self.left, self.right))
        both: Tensor = (left * right).square()
        return both

    def weighted_sum(self, weights: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        clients, width = weights.shape
        left = (_zero_nonfinite(self.left) * weights.to(self.left.dtype).reshape(-1, 1)).reshape(clients, width, -1)
        right = _zero_nonfinite(self.right).reshape(clients, width, -1)
        return left.to(dtype or left.dtype).transpose(1, 2) @ right.to(dtype or right.dtype)


LayerGradients = Callable[[nn.Module, Tensor, Tensor], dict[str, Gradient]]


def linear_gradients(layer: nn.Module, inputs: Tensor, outer: Tensor) -> dict[str, Gradient]:
    """g aᵀ, summed over whatever lies between the example and the features (a sequence, say)."""
    if inputs.dim() == 2:
        return {"weight": OuterProductGradient(outer, inputs), "bias": DenseGradient(outer)}
    inputs, outer = inputs.flatten(1, -2), outer.flatten(1, -2)
    return {"weight": DenseGradient(outer.transpose(1, 2) @ inputs), "bias": DenseGradient(outer.sum(dim=1))}


def convolution_gradients(layer: nn.Module, inputs: Tensor, outer: Tensor) -> dict[str, Gradient]:
    """g Uᵀ with U the patches that the kernel saw: a strided view, copied once."""
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
    """The normalised input times g, summed over positions."""
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


def _zero_nonfinite(value: Tensor) -> Tensor:
    """An example that is not finite has weight 0, and 0·NaN is NaN.

    On a host the look is cheaper than the copy; a GPU would have to wait for it.
    """
    if not value.is_cuda and bool(torch.isfinite(value.sum())):
        return value
    return value.nan_to_num(0.0, 0.0, 0.0)


LAYER_GRADIENTS: dict[type[nn.Module], LayerGradients] = {
    nn.Linear: linear_gradients,
    nn.Conv2d: convolution_gradients,
    nn.GroupNorm: normalisation_gradients,
    nn.LayerNorm: normalisation_gradients,
}


def supported_layers(loss: object, params: Params) -> dict[str, nn.Module] | None:
    """The layers that hold all of `params`, by name, if each is of a kind known here; else None."""
    if not isinstance(loss, ModuleLoss):
        return None
    return _find_supported_layers(loss.module, frozenset(params))


@lru_cache(maxsize=64)
def _find_supported_layers(module: nn.Module, names: frozenset[str]) -> dict[str, nn.Module] | None:
    found = {
        name: layer
        for name, layer in module.named_modules()
        if type(layer) in LAYER_GRADIENTS and is_shipped_layer(layer)
    }
    held = {f"{name}.{own}" if name else own for name, layer in found.items() for own, _ in layer.named_parameters()}
    tied = len({id(value) for value in module.parameters()}) != len(
        list(module.named_parameters(remove_duplicate=False))
    )
    odd = any(
        isinstance(layer, nn.Conv2d)
        and (
            layer.groups != 1
            or layer.dilation != (1, 1)
            or layer.padding_mode != "zeros"
            or isinstance(layer.padding, str)
        )
        for layer in found.values()
    )
    if tied or odd or not names <= held:
        return None
    return {
        name: layer
        for name, layer in found.items()
        if any(each.startswith(f"{name}." if name else "") for each in names)
    }


def channels_last(value: Tensor) -> Tensor:
    """Images in the layout that pooling and convolutions are quickest with."""
    return value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value


def keep_layout(value: Tensor) -> Tensor:
    return value


Taps = dict[str, Tensor]
Layout = Callable[[Tensor], Tensor]


@contextmanager
def record_layers(layers: dict[str, nn.Module], taps: Taps, seen: Taps, layout: Layout) -> Iterator[None]:
    """Record what goes into each layer, and add a zero to what comes out: the gradient there is that zero's."""

    def tap(name: str) -> Tap:
        def record(inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            seen[name] = inputs[0]
            return layout(output) + taps[name]

        return Tap(record)

    with _register_hooks({name: (layer, tap(name)) for name, layer in layers.items()}):
        yield


def output_shapes(
    loss: ModuleLoss, layers: dict[str, nn.Module], params: Params, inputs: Tensor, targets: Tensor
) -> dict[str, torch.Size] | None:
    """What each layer puts out for one example; None when a layer is used twice or not at all."""
    found: dict[str, list[torch.Size]] = {name: [] for name in layers}

    def tap(name: str) -> Tap:
        return Tap(lambda inputs, output: found[name].append(output.shape[1:]))

    taps = {name: (layer, tap(name)) for name, layer in layers.items()}
    with torch.no_grad(), seed_torch(0, inputs.device), _register_hooks(taps):  # nobody misses what dropout draws here
        loss(params, inputs[:1], targets[:1])
    if any(len(shapes) != 1 for shapes in found.values()):
        return None
    return {name: shapes[0] for name, shapes in found.items()}


@contextmanager
def _register_hooks(taps: dict[str, tuple[nn.Module, Tap]]) -> Iterator[None]:
    handles = [layer.register_forward_hook(tap) for layer, tap in taps.values()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def example_gradients(
    layers: dict[str, nn.Module], names: frozenset[str], seen: Params, outer: Params
) -> dict[str, Gradient]:
    """Every example's gradient of every parameter in `names`."""
    found = {}
    for name, layer in layers.items():
        for own, value in LAYER_GRADIENTS[type(layer)](layer, seen[name], outer[name]).items():
            full = f"{name}.{own}" if name else own
            if full in names:
                found[full] = value
    return found
