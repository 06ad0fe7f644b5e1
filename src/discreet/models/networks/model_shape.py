"""Check the shape of a task's inputs for a network, and initialise weights from one generator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.lazy_torch import nn, torch
from discreet.randomness.torch_seed import seed_torch


def input_size(task: Task) -> int:
    """Return how many numbers one input has, and refuse whole numbers, which linear layers can't take."""
    if not task.train.inputs.is_floating_point():
        raise InvalidInput(
            f"Task {task.name!r} has whole-number inputs, which a linear layer can't take.",
            fix="Use a model of your own that starts with an Embedding, or give the inputs as floating-point numbers.",
        )
    return math.prod(task.input_shape)


def check_image_shape(task: Task, model: str, *allowed: tuple[int, int, int]) -> tuple[int, ...]:
    """Return the shape of an input, and refuse a shape that the network is not made for."""
    input_size(task)
    if task.input_shape not in allowed:
        shapes = " or ".join(map(str, allowed))
        raise InvalidInput(
            f"{model} needs inputs of the shape {shapes}, and task {task.name!r} has {task.input_shape}.",
            fix="Use model mlp or linear, or a task of that shape.",
        )
    return task.input_shape


def group_norm(task: Task, groups: int) -> nn.GroupNorm:
    """Build a layer that normalises the channels of each example in groups, without any parameter."""
    if len(task.input_shape) < 2:
        raise InvalidInput(
            f"norm_groups needs inputs with channels, and task {task.name!r} has inputs of the shape "
            f"{task.input_shape}.",
            fix="Leave norm_groups out.",
        )
    channels = task.input_shape[0]
    if channels % groups:
        divisors = ", ".join(str(number) for number in range(1, channels + 1) if channels % number == 0)
        raise InvalidInput(
            f"norm_groups must divide the {channels} channels of task {task.name!r}, and got {groups}.",
            fix=f"Use one of {divisors}.",
        )
    return nn.GroupNorm(groups, channels, affine=False)


def flatten_then(task: Task, *layers: nn.Module) -> nn.Module:
    """Return the layers in sequence, after a layer that flattens inputs of several dimensions."""
    flatten = [] if len(task.input_shape) == 1 else [nn.Flatten()]
    sequence = [*flatten, *layers]
    return sequence[0] if len(sequence) == 1 else nn.Sequential(*sequence)


@contextmanager
def seeded_initialisation(generator: torch.Generator) -> Iterator[None]:
    """Let torch initialise layers from `generator` within the context; the global generator is not changed."""
    seed = int(torch.randint(2**63 - 1, (), generator=generator))
    with seed_torch(seed):
        yield
