"""One linear layer: logistic or linear regression."""

from typing import Literal

import torch
from torch import nn

from discreet.models.shape import flattened, inputs_of
from discreet.part import part
from discreet.tasks.task import Task


@part
class Linear:
    """Starts at zero: the loss is convex, so there is no symmetry to break."""

    kind: Literal["linear"] = "linear"

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        layer = nn.Linear(inputs_of(task), task.classes)
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
        return flattened(task, layer)
