"""Σ over each client's examples of its gradient, scaled down to a norm: the heart of DP-SGD, three ways.

Layer by layer where the network is made of known layers: one client after the other where each has much to do (a CPU's
caches like that), all clients stacked where each has little. Any other network goes through nested vmap.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from discreet.batches import Batch
from discreet.clipping import factors
from discreet.params import Params, zeros_like
from discreet.training.layers import (
    Gradient,
    Layout,
    Whole,
    channels_last,
    gradients,
    layers_of,
    output_shapes,
    tapped,
    unchanged,
)
from discreet.training.module_loss import ModuleLoss
from discreet.training.trainer import Loss

Layers: TypeAlias = dict[str, nn.Module]
Shapes: TypeAlias = dict[str, torch.Size]

LARGE = 2**16  # numbers in one client's batch, from which on a CPU does better with one client at a time


def clipped_sum(loss: Loss, params: Params, batch: Batch, clip_norm: float) -> Params:
    """Each client's sum over its examples, none of which moves it by more than `clip_norm`.

    Guarantee: an example whose gradient is not finite counts as zero; cells without an example count for nothing.
    """
    layers = layers_of(loss, params)
    if layers is None:
        return _by_vmap(loss, params, batch, clip_norm)
    assert isinstance(loss, ModuleLoss)
    key = (frozenset(params), batch.inputs.shape[2:])
    if key not in loss.shapes:
        first = {name: value[0] for name, value in params.items()}
        loss.shapes[key] = output_shapes(loss, layers, first, batch.inputs[0], batch.targets[0])
    shapes = loss.shapes[key]
    if shapes is None:
        return _by_vmap(loss, params, batch, clip_norm)
    if batch.inputs.device.type == "cpu" and batch.inputs[0].numel() >= LARGE:
        return _one_by_one(loss, layers, shapes, params, batch, clip_norm)
    return _stacked(loss, layers, shapes, params, batch, clip_norm)


def _one_by_one(
    loss: ModuleLoss, layers: Layers, shapes: Shapes, params: Params, batch: Batch, clip_norm: float
) -> Params:
    """Each client by itself, on its own examples alone, without padding."""
    total = zeros_like(params)
    for client in batch.mask.any(dim=1).nonzero().flatten().tolist():
        own = {name: value[client] for name, value in params.items()}
        inputs, targets = batch.inputs[client][batch.mask[client]], batch.targets[client][batch.mask[client]]
        taps = {name: channels_last(inputs.new_zeros(len(inputs), *shape)) for name, shape in shapes.items()}
        outer, seen = _traced(loss, layers, channels_last)(own, taps, inputs, targets)
        found = gradients(layers, frozenset(params), seen, outer)
        everyone = torch.ones(1, len(inputs), dtype=torch.bool)
        for name, value in _weighted_sum(found, clip_norm, everyone).items():
            total[name][client] = value[0]
    return total


def _stacked(
    loss: ModuleLoss, layers: Layers, shapes: Shapes, params: Params, batch: Batch, clip_norm: float
) -> Params:
    """All clients at once: vmap over clients, and each layer's products over all examples of all of them."""
    clients, width = batch.mask.shape
    taps = {name: batch.inputs.new_zeros(clients, width, *shape) for name, shape in shapes.items()}
    traced = vmap(_traced(loss, layers, unchanged), randomness="different")
    outer, seen = traced(params, taps, batch.inputs, batch.targets)
    flat_seen = {name: value.flatten(0, 1) for name, value in seen.items()}
    flat_outer = {name: value.flatten(0, 1) for name, value in outer.items()}
    return _weighted_sum(gradients(layers, frozenset(params), flat_seen, flat_outer), clip_norm, batch.mask)


def _by_vmap(loss: Loss, params: Params, batch: Batch, clip_norm: float) -> Params:
    """Any differentiable loss: a gradient for each example of each client by nested vmap."""

    def one(model: Params, example: Tensor, target: Tensor) -> Tensor:
        return loss(model, example[None], target[None])[0]

    each_example = vmap(grad(one), in_dims=(None, 0, 0), randomness="different")
    found = vmap(each_example, in_dims=(0, 0, 0), randomness="different")(params, batch.inputs, batch.targets)
    return _weighted_sum({name: Whole(value.flatten(0, 1)) for name, value in found.items()}, clip_norm, batch.mask)


def _weighted_sum(found: Mapping[str, Gradient], clip_norm: float, mask: Tensor) -> Params:
    """Σ_e min(1, clip/‖g_e‖)·g_e for each client, where ‖g_e‖ is over all parameters together."""
    squares = torch.stack([each.squares() for each in found.values()]).sum(dim=0)
    weights = factors(squares.sqrt().reshape(mask.shape), clip_norm) * mask
    return {name: each.summed(weights) for name, each in found.items()}


def _traced(loss: ModuleLoss, layers: Layers, layout: Layout) -> Callable[..., tuple[Params, Params]]:
    """For one client's model and batch: the gradient at what each layer put out, and what went into it."""

    def run(params: Params, taps: Params, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Params]:
        seen: Params = {}
        with tapped(layers, taps, seen, layout):
            return loss(params, inputs, targets).sum(), seen

    return grad(run, argnums=1, has_aux=True)
