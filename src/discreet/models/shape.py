"""What every model needs to know of its task, and weights that come from one generator."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from discreet.errors import InvalidInput
from discreet.tasks.task import Task


def inputs_of(task: Task) -> int:
    """How many numbers one input holds."""
    if not task.train.inputs.is_floating_point():
        raise InvalidInput(
            f"Task {task.name!r} has whole-number inputs, which a linear layer can't take.",
            fix="Use a model of your own that starts with an Embedding, or give the inputs as floating-point numbers.",
        )
    return math.prod(task.input_shape)


def flattened(task: Task, *layers: nn.Module) -> nn.Module:
    """The layers in a row, after images and the like were laid flat."""
    flat = [] if len(task.input_shape) == 1 else [nn.Flatten()]
    row = [*flat, *layers]
    return row[0] if len(row) == 1 else nn.Sequential(*row)


@contextmanager
def initialised(generator: torch.Generator) -> Iterator[None]:
    """Within it, torch's own initialisation draws from `generator`; the global stream stays where it was."""
    seed = int(torch.randint(2**63 - 1, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
