"""ResNet-18 for small images (He et al. 2016) with group normalisation, because batch normalisation mixes examples."""

from __future__ import annotations

from typing import Literal

from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.lazy_torch import nn, torch
from discreet.models.networks.model_shape import input_size, seeded_initialisation
from discreet.part import part

SMALLEST = 8  # pixels per side: after three halvings one is left


@part
class Resnet18:
    """11,173,962 parameters for 10 classes, 11,220,132 for 100. The first layer keeps the resolution, as for CIFAR."""

    kind: Literal["resnet18"] = "resnet18"

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        """Build the network for a task. Its initial weights come from `generator`."""
        from discreet.models.networks.residual_blocks import PixelMean, residual_layers  # modules of torch

        input_size(task)
        shape = task.input_shape
        if len(shape) != 3 or min(shape[1:]) < SMALLEST:
            raise InvalidInput(
                f"resnet18 needs images as (channels, height, width) of at least {SMALLEST} pixels per side, and task "
                f"{task.name!r} has inputs of the shape {shape}.",
                fix="Use model mlp or linear, or another task.",
            )
        with seeded_initialisation(generator):
            return nn.Sequential(*residual_layers(shape[0]), PixelMean(), nn.Linear(512, task.classes))
