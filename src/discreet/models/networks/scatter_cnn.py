"""The convolutional networks of Tramèr & Boneh (2021) on ScatterNet features."""

from __future__ import annotations

from typing import Literal

from discreet.data.tasks.task import Task
from discreet.lazy_torch import nn, torch
from discreet.models.networks.activation import AnyActivation, TemperedActivation, activation_layer
from discreet.models.networks.model_shape import check_image_shape, group_norm, seeded_initialisation
from discreet.part import Count, part

GREY, COLOUR = (81, 7, 7), (243, 8, 8)


@part
class ScatterCnn:
    """For ten classes: 33,066 parameters on features of 28 by 28 pixels, 187,210 on those of colour images of 32 by 32.

    Attributes:
        norm_groups: Normalise the channels of each example in this number of groups first. It costs no privacy.
        activation: The activation after each layer but the last.
    """

    kind: Literal["scatter_cnn"] = "scatter_cnn"
    norm_groups: Count = 27
    activation: AnyActivation = TemperedActivation()

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        """Build the network for a task. Its initial weights come from `generator`."""
        shape = check_image_shape(task, self.kind, GREY, COLOUR)
        norm = group_norm(task, self.norm_groups)
        with seeded_initialisation(generator):
            layers = self._grey(task.classes) if shape == GREY else self._colour(task.classes)
        return nn.Sequential(norm, *layers)

    def _grey(self, classes: int) -> list[nn.Module]:
        return [
            nn.Conv2d(81, 16, kernel_size=3, stride=2, padding=1),
            activation_layer(self.activation),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            activation_layer(self.activation),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 32),
            activation_layer(self.activation),
            nn.Linear(32, classes),
        ]

    def _colour(self, classes: int) -> list[nn.Module]:
        return [
            nn.Conv2d(243, 64, kernel_size=3, padding=1),
            activation_layer(self.activation),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 64, kernel_size=3, padding=1),
            activation_layer(self.activation),
            nn.Flatten(),
            nn.Linear(64 * 4 * 4, classes),
        ]
