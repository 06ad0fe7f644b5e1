"""The convolutional networks of Papernot et al. (2021), small enough for DP-SGD from scratch."""

from __future__ import annotations

from typing import Literal

from discreet.data.tasks.task import Task
from discreet.lazy_torch import nn, torch
from discreet.models.networks.activation import AnyActivation, TemperedActivation, activation_layer
from discreet.models.networks.model_shape import check_image_shape, seeded_initialisation
from discreet.part import part

GREY, COLOUR = (1, 28, 28), (3, 32, 32)


@part
class PapernotCnn:
    """For ten classes: 26,010 parameters on images of 28 by 28 pixels, 550,570 on colour images of 32 by 32 pixels."""

    kind: Literal["papernot_cnn"] = "papernot_cnn"
    activation: AnyActivation = TemperedActivation()

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        """Build the network for a task. Its initial weights come from `generator`."""
        shape = check_image_shape(task, self.kind, GREY, COLOUR)
        with seeded_initialisation(generator):
            return self._grey(task.classes) if shape == GREY else self._colour(task.classes)

    def _grey(self, classes: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=8, stride=2, padding=2),
            activation_layer(self.activation),
            nn.MaxPool2d(2, stride=1),
            nn.Conv2d(16, 32, kernel_size=4, stride=2),
            activation_layer(self.activation),
            nn.MaxPool2d(2, stride=1),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 32),
            activation_layer(self.activation),
            nn.Linear(32, classes),
        )

    def _colour(self, classes: int) -> nn.Module:
        layers: list[nn.Module] = []
        channels = 3
        for width in (32, 64, 128):
            for before in (channels, width):
                layers += [nn.Conv2d(before, width, kernel_size=3, padding=1), activation_layer(self.activation)]
            layers.append(nn.MaxPool2d(2))
            channels = width
        return nn.Sequential(
            *layers,
            nn.Flatten(),
            nn.Linear(128 * 4 * 4, 128),
            activation_layer(self.activation),
            nn.Linear(128, classes),
        )
