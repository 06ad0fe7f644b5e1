"""The sum of clipped per-example gradients, which DP-SGD needs, in three ways.

If all parameters are in supported layers, gradients are computed layer by layer: one client after the other for large
batches on a CPU, whose caches that suits, else all clients stacked. Any other network goes through nested vmap. Whole
batches go through a network only if it is known to treat examples independently.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from discreet.algorithms.clipping import Clip, clip_factors
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.example_isolation import WithoutDropout, isolates_examples
from discreet.algorithms.training.gradient_records import DenseGradient, Gradient
from discreet.algorithms.training.layer_gradients import example_gradients, supported_layers
from discreet.algorithms.training.layer_recording import (
    Layout,
    channels_last,
    keep_layout,
    output_shapes,
    record_layers,
)
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.shipped_modules import has_global_overrides
from discreet.algorithms.training.trainer import Loss
from discreet.client_layers.precision import in_float32
from discreet.params import Params, repeat_for_clients
from discreet.randomness.torch_seed import seed_torch

TRIAL_EXAMPLES = 3  # on which two ways to compute gradients are compared
LARGE_BATCH = 2**16  # values in one client's batch; from here on, a CPU is faster with one client at a time


# Devices on which clients of one model share a pass. A CPU gains little by it, and keeps its bits.
ONE_PASS = frozenset({"cuda"})


def clipped_sum(loss: Loss, params: Params, batch: Batch, clip: Clip, *, shared: bool = False) -> Params:
    """Sum each client's gradients, each clipped, so that no example moves the sum by more than the clip norm.

    Args:
        loss: Loss of a model on examples.
        params: One model for each client.
        batch: Examples of each client.
        clip: The norm that every example's gradient is clipped to.
        shared: Whether all clients have the same model, given without a client axis.

    Guarantee: whatever the network computes, an example's gradient is that of its own loss; one that is not finite
    counts as zero; cells without an example don't count. The norm that is clipped is that of the very numbers that are
    summed. The sum is in double precision, since its rounding depends on all examples (docs/notes/numerics.md).
    """
    model, params = params, repeat_for_clients(params, len(batch.mask)) if shared else params
    plan = plan_for(loss, params, batch)
    if plan is None:
        return _sum_by_vmap(loss, params, batch, clip)
    assert isinstance(loss, ModuleLoss)
    if shared and batch.inputs.device.type in ONE_PASS:
        return _weighted_sum(_one_model_gradients(loss, plan, model, batch), clip, batch.mask)
    if batch.inputs.device.type == "cpu" and batch.inputs[0].numel() >= LARGE_BATCH:
        return _sum_client_by_client(loss, plan, params, batch, clip)
    return _weighted_sum(_stacked_gradients(loss, plan, params, batch), clip, batch.mask)


def gradients_by_way(loss: Loss, params: Params, batch: Batch) -> dict[str, Mapping[str, Gradient]]:
    """Return every example's gradient, computed in each of the ways that `clipped_sum` may use on this device.

    Examples are ordered by client, and all cells of `batch` count as examples.
    """
    plan = plan_for(loss, params, batch)
    if plan is None:
        return {"by vmap": _vmap_gradients(loss, params, batch)}
    assert isinstance(loss, ModuleLoss)
    found = {"stacked": _stacked_gradients(loss, plan, params, batch)}
    first = {name: value[0] for name, value in params.items()}
    if batch.inputs.device.type in ONE_PASS:
        found["one model for all"] = _one_model_gradients(loss, plan, first, batch)
    if batch.inputs.device.type == "cpu":
        found["first client alone"] = _one_client_gradients(loss, plan, first, batch.inputs[0], batch.targets[0])
    return found


def count_clipped(loss: Loss, params: Params, batch: Batch, norm: float | Tensor) -> int:
    """Return how many examples have a gradient that is longer than the norm, or not finite. No guarantee covers it."""
    plan = plan_for(loss, params, batch)
    if plan is None:
        found = _vmap_gradients(loss, params, batch)
    else:
        assert isinstance(loss, ModuleLoss)
        found = _stacked_gradients(loss, plan, params, batch)
    norms = _squared_norms(found).sqrt().reshape(batch.mask.shape)
    return int((~(norms <= norm) & batch.mask).sum())


UNCLIPPED = Clip(1e30)


class Plan(NamedTuple):
    """How a network's gradients are computed layer by layer.

    Attributes:
        layers: The layers by name.
        shapes: Shape of each layer's output for one example.
        unbatched: Layers whose inputs have no axis of examples.
        whole: Whether whole batches may go through the network.
    """

    layers: dict[str, nn.Module]
    shapes: dict[str, torch.Size]
    unbatched: frozenset[str]
    whole: bool


def plan_for(loss: Loss, params: Params, batch: Batch) -> Plan | None:
    """Return the plan for this network, found once and again if global hooks change; None if there is none."""
    layers = supported_layers(loss, params)
    if layers is None:
        return None
    assert isinstance(loss, ModuleLoss)
    key = (frozenset(params), batch.inputs.shape[2:], has_global_overrides())
    if key not in loss.plans:
        loss.plans[key] = _make_plan(loss, layers, params, batch)
    plan: Plan | None = loss.plans[key]
    return plan


def _make_plan(loss: ModuleLoss, layers: dict[str, nn.Module], params: Params, batch: Batch) -> Plan | None:
    """Make a plan; None if a layer is used twice or not at all, or its weights are also used outside it."""
    first = {name: value[0] for name, value in params.items()}
    found = output_shapes(loss, layers, first, batch.inputs[0], batch.targets[0])
    if found is None:
        return None
    plan = Plan(layers, *found, isolates_examples(loss))
    if plan.whole:
        return None if plan.unbatched else plan
    few = Batch(
        batch.inputs[:1, :TRIAL_EXAMPLES],
        batch.targets[:1, :TRIAL_EXAMPLES],
        batch.mask[:1, :TRIAL_EXAMPLES] | True,
        None,
    )
    one = {name: value[:1] for name, value in params.items()}
    with seed_torch(0, batch.inputs.device), WithoutDropout(), in_float32():
        summed = _weighted_sum(_stacked_gradients(loss, plan, one, few), UNCLIPPED, few.mask)
        expected = _sum_by_vmap(loss, one, few, UNCLIPPED)
    longest = max(float(value.abs().max()) for value in expected.values())
    close = all(torch.allclose(summed[name], expected[name], rtol=1e-3, atol=1e-4 * longest) for name in one)
    return plan if close else None


def _sum_client_by_client(loss: ModuleLoss, plan: Plan, params: Params, batch: Batch, clip: Clip) -> Params:
    """Process each client by itself, on its own examples without padding."""
    total = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in params.items()}
    for client in batch.mask.any(dim=1).nonzero().flatten().tolist():
        own = {name: value[client] for name, value in params.items()}
        inputs, targets = batch.inputs[client][batch.mask[client]], batch.targets[client][batch.mask[client]]
        everyone = torch.ones(1, len(inputs), dtype=torch.bool)
        found = _one_client_gradients(loss, plan, own, inputs, targets)
        for name, value in _weighted_sum(found, clip.for_client(client), everyone).items():
            total[name][client] = value[0]
    return total


def _one_client_gradients(
    loss: ModuleLoss, plan: Plan, params: Params, inputs: Tensor, targets: Tensor
) -> Mapping[str, Gradient]:
    layout = channels_last if plan.whole else keep_layout
    taps = _zero_taps(plan, params, len(inputs))
    outer, seen = _trace(loss, plan, layout)(params, taps, inputs, targets)
    return example_gradients(plan.layers, frozenset(params), seen, outer)


def _one_model_gradients(loss: ModuleLoss, plan: Plan, params: Params, batch: Batch) -> Mapping[str, Gradient]:
    """Process the examples of clients that have the same model as those of one client."""
    return _one_client_gradients(loss, plan, params, batch.inputs.flatten(0, 1), batch.targets.flatten(0, 1))


def _stacked_gradients(loss: ModuleLoss, plan: Plan, params: Params, batch: Batch) -> Mapping[str, Gradient]:
    """Process all clients at once: vmap over clients, and products of each layer over all examples."""
    clients, width = batch.mask.shape
    taps = _zero_taps(plan, params, clients, width)
    traced = vmap(_trace(loss, plan, keep_layout), randomness="different")
    outer, seen = (
        {name: value.flatten(0, 1) for name, value in found.items()}
        for found in traced(params, taps, batch.inputs, batch.targets)
    )
    return example_gradients(plan.layers, frozenset(params), seen, outer)


def _zero_taps(plan: Plan, params: Params, *leading: int) -> Params:
    """Return zeros of the shapes of all outputs, as views of one number, of the type of the parameters."""
    zero = next(iter(params.values())).new_zeros(())
    return {name: zero.expand(*leading, *shape) for name, shape in plan.shapes.items()}


def _sum_by_vmap(loss: Loss, params: Params, batch: Batch, clip: Clip) -> Params:
    return _weighted_sum(_vmap_gradients(loss, params, batch), clip, batch.mask)


def _vmap_gradients(loss: Loss, params: Params, batch: Batch) -> Mapping[str, Gradient]:
    """Compute a gradient for each example of each client by nested vmap, for any differentiable loss."""

    def example_loss(model: Params, example: Tensor, target: Tensor) -> Tensor:
        return loss(model, example[None], target[None])[0]

    each_example = vmap(grad(example_loss), in_dims=(None, 0, 0), randomness="different")
    found = vmap(each_example, in_dims=(0, 0, 0), randomness="different")(params, batch.inputs, batch.targets)
    return {name: DenseGradient(value.flatten(0, 1)) for name, value in found.items()}


def _weighted_sum(found: Mapping[str, Gradient], clip: Clip, mask: Tensor) -> Params:
    """Σ_e min(1, clip/‖g_e‖)·g_e for each client, where ‖g_e‖ is over all parameters together."""
    norms = _squared_norms(found).sqrt().reshape(mask.shape)
    weights = clip_factors(norms, clip.norm, automatic=clip.automatic) * mask
    exclude = norms.is_cuda or not bool(norms.isfinite().all())  # a GPU would have to wait for the check
    return {name: (each.zero_nonfinite() if exclude else each).weighted_sum(weights) for name, each in found.items()}


def _squared_norms(found: Mapping[str, Gradient]) -> Tensor:
    """Return each example's squared norm over all parameters together."""
    return torch.stack([each.squared_norms() for each in found.values()]).sum(dim=0)


def _trace(loss: ModuleLoss, plan: Plan, layout: Layout) -> Callable[..., tuple[Params, Params]]:
    """Return a function that gives, for one client, the gradients of each layer's outputs and its inputs."""

    def run(params: Params, taps: Params, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Params]:
        seen: Params = {}
        with record_layers(plan.layers, taps, seen, layout):
            return loss(params, inputs, targets).sum(), seen

    traced = grad(run, argnums=1, has_aux=True)
    if plan.whole:
        return traced

    def alone(params: Params, taps: Params, example: Tensor, target: Tensor) -> tuple[Params, Params]:
        """Run a batch of one: whatever the network does, it can't reach another example."""
        ones = {name: tap if name in plan.unbatched else tap[None] for name, tap in taps.items()}
        found = traced(params, ones, example[None], target[None])
        outer, seen = (
            {name: value if name in plan.unbatched else value[0] for name, value in each.items()} for each in found
        )
        return outer, seen

    return vmap(alone, in_dims=(None, 0, 0, 0), randomness="different")
