"""Rebuild examples from a gradient: exactly from a fully connected first layer, else by optimisation."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from discreet.experiment.job import Job
from discreet.params import Params, flatten

SMALLEST = 1e-30
RATE, MOST_STEPS = 0.1, 400
SMOOTHNESS = 1e-3  # weight of the total variation, where inputs are images


class FirstLayer(NamedTuple):
    """The names of the weight and the bias of a fully connected layer that sees the inputs as they are."""

    weight: str
    bias: str


def find_first_layer(job: Job) -> FirstLayer | None:
    """Return the fully connected layer that the inputs enter first; None if another layer changes them before."""
    module, found = job.model.module_with_params(job.params), None
    inputs = job.data.inputs[:1]
    seen: list[tuple[str, Tensor]] = []

    def watch(name: str) -> Callable[..., None]:
        return lambda layer, arguments, output: seen.append((name, arguments[0]))

    hooks = [
        layer.register_forward_hook(watch(name))
        for name, layer in module.named_modules()
        if any(True for _ in layer.parameters(recurse=False))
    ]
    with torch.no_grad():
        module(inputs)
    for hook in hooks:
        hook.remove()
    name, entered = seen[0]
    layer = module.get_submodule(name)
    prefix = f"{name}." if name else ""
    if isinstance(layer, nn.Linear) and layer.bias is not None and torch.equal(entered.flatten(), inputs.flatten()):
        found = FirstLayer(f"{prefix}weight", f"{prefix}bias")
    return found if found is not None and found.weight in job.params and found.bias in job.params else None


def invert_first_layer(gradient: Params, layer: FirstLayer) -> Tensor:
    """Return the input of a single example from the gradients of a first layer: dL/dW_i = x·dL/db_i for every row i.

    All rows say the same of one example; under noise, this is their least-squares answer.
    """
    weight, bias = gradient[layer.weight].double(), gradient[layer.bias].double()
    return (bias[:, None] * weight).sum(dim=0) / bias.square().sum().clamp(min=SMALLEST)


def invert_by_optimisation(
    job: Job,
    gradient: Params,
    targets: Tensor,
    value_range: tuple[float, float],
    generator: torch.Generator,
    *,
    is_image: bool,
    steps: int = MOST_STEPS,
) -> Tensor:
    """Search inputs whose gradient has the direction of what was seen (Geiping et al. 2020).

    The loss is 1 − cos of the two gradients, with the total variation of images; Adam with three smaller rates at the
    end. The attacker is given the labels, which label inference finds too.

    Args:
        job: The experiment, whose first model was broadcast.
        gradient: What the server saw.
        targets: The targets of the examples, in some order.
        value_range: The range of the inputs.
        generator: Where the search starts from.
        is_image: Whether neighbouring inputs are pixels beside each other.
        steps: Number of steps of the search.
    """
    low, high = value_range
    shape, device = (len(targets), *job.task.input_shape), job.device
    start = low + (high - low) * torch.rand(shape, generator=generator)
    guess = start.to(device, next(iter(job.params.values())).dtype).requires_grad_(True)
    seen = flatten(gradient).to(guess)
    seen = seen / seen.norm().clamp(min=SMALLEST)
    params = {name: value.detach().requires_grad_(True) for name, value in job.params.items()}
    names = sorted(params)
    optimiser = torch.optim.Adam([guess], lr=RATE * (high - low))
    milestones = [math.ceil(steps * share) for share in (0.375, 0.625, 0.875)]
    rates = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones, gamma=0.1)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = job.model.loss(params, guess, targets.to(device)).mean()
        found: Any = torch.autograd.grad(loss, [params[name] for name in names], create_graph=True)
        direction = torch.cat([value.reshape(-1) for value in found])
        distance = 1 - (direction @ seen) / direction.norm().clamp(min=SMALLEST)
        if is_image:
            distance = distance + SMOOTHNESS * total_variation(guess) / (high - low)
        (guess.grad,) = torch.autograd.grad(distance, [guess])
        optimiser.step()
        rates.step()
        with torch.no_grad():
            guess.clamp_(low, high)
    return guess.detach().cpu().double()


def total_variation(images: Tensor) -> Tensor:
    """Return the mean difference of neighbouring pixels, over the last two axes; flat images are squares."""
    if images.dim() == 2:
        side = math.isqrt(images.shape[1])
        images = images.reshape(len(images), side, side)
    return images.diff(dim=-1).abs().mean() + images.diff(dim=-2).abs().mean()
