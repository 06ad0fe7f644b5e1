"""The convolutional network that DP-FedSAM (Shi et al. 2023) trains on EMNIST."""

from __future__ import annotations

from typing import Literal

from discreet.data.tasks.task import Task
from discreet.lazy_torch import nn, torch
from discreet.models.networks.activation import AnyActivation, activation_layer
from discreet.models.networks.model_shape import check_image_shape, seeded_initialisation
from discreet.part import part

PADDED, PLAIN = (1, 32, 32), (1, 28, 28)


@part
class EmnistCnn:
    """903,614 parameters for 62 classes. Its inputs have 32 by 32 pixels; images of 28 by 28 get a dark margin."""

    kind: Literal["emnist_cnn"] = "emnist_cnn"
    activation: AnyActivation = "relu"

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        """Build the network for a task. Its initial weights come from `generator`."""
        margin = [nn.ZeroPad2d(2)] if check_image_shape(task, self.kind, PADDED, PLAIN) == PLAIN else []
        with seeded_initialisation(generator):
            return nn.Sequential(
                *margin,
                nn.Conv2d(1, 32, kernel_size=5),
                nn.MaxPool2d(2),
                activation_layer(self.activation),
                nn.Conv2d(32, 64, kernel_size=5),
                nn.MaxPool2d(2),
                activation_layer(self.activation),
                nn.Flatten(),
                nn.Linear(64 * 5 * 5, 512),
                activation_layer(self.activation),
                nn.Linear(512, task.classes),
            )
