"""A network of fully connected layers."""

from itertools import pairwise
from typing import Literal

import torch
from torch import nn

from discreet.data.tasks.task import Task
from discreet.models.networks.activation import AnyActivation, layer
from discreet.models.networks.model_shape import flattened, initialised, inputs_of
from discreet.part import Count, part


@part
class Mlp:
    """Hidden layers of these widths."""

    kind: Literal["mlp"] = "mlp"
    hidden: tuple[Count, ...] = (64,)
    activation: AnyActivation = "tanh"

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        with initialised(generator):
            layers: list[nn.Module] = []
            for before, after in pairwise((inputs_of(task), *self.hidden)):
                layers += [nn.Linear(before, after), layer(self.activation)]
            last = self.hidden[-1] if self.hidden else inputs_of(task)
            return flattened(task, *layers, nn.Linear(last, task.classes))
