"""A network of fully connected layers."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from discreet.data.tasks.task import Task
from discreet.lazy_torch import nn, torch
from discreet.models.networks.activation import AnyActivation, activation_layer
from discreet.models.networks.model_shape import flatten_then, input_size, seeded_initialisation
from discreet.part import Count, part


@part
class Mlp:
    """Fully connected layers.

    Attributes:
        hidden: The widths of the hidden layers.
        activation: The activation after each hidden layer.
    """

    kind: Literal["mlp"] = "mlp"
    hidden: tuple[Count, ...] = (64,)
    activation: AnyActivation = "tanh"

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        """Build the network for a task. Its initial weights come from `generator`."""
        with seeded_initialisation(generator):
            layers: list[nn.Module] = []
            for before, after in pairwise((input_size(task), *self.hidden)):
                layers += [nn.Linear(before, after), activation_layer(self.activation)]
            last = self.hidden[-1] if self.hidden else input_size(task)
            return flatten_then(task, *layers, nn.Linear(last, task.classes))
