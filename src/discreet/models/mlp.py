"""A network of fully connected layers."""

from itertools import pairwise
from typing import Literal

import torch
from torch import nn

from discreet.models.shape import flattened, initialised, inputs_of
from discreet.part import Count, part
from discreet.tasks.task import Task

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU}


@part
class Mlp:
    """Hidden layers of these widths. Bounded activations lose less to clipping (Papernot et al. 2021)."""

    kind: Literal["mlp"] = "mlp"
    hidden: tuple[Count, ...] = (64,)
    activation: Literal["tanh", "relu", "gelu"] = "tanh"

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        with initialised(generator):
            layers: list[nn.Module] = []
            for before, after in pairwise((inputs_of(task), *self.hidden)):
                layers += [nn.Linear(before, after), ACTIVATIONS[self.activation]()]
            last = self.hidden[-1] if self.hidden else inputs_of(task)
            return flattened(task, *layers, nn.Linear(last, task.classes))
