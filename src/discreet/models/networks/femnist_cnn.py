"""The convolutional network of Fu et al. 2021 for FEMNIST."""

from __future__ import annotations

from typing import Literal

from discreet.data.tasks.task import Task
from discreet.lazy_torch import nn, torch
from discreet.models.networks.activation import AnyActivation, activation_layer
from discreet.models.networks.model_shape import check_image_shape, seeded_initialisation
from discreet.part import part


@part
class FemnistCnn:
    """214,590 parameters for 62 classes."""

    kind: Literal["femnist_cnn"] = "femnist_cnn"
    activation: AnyActivation = "relu"

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        """Build the network for a task. Its initial weights come from `generator`."""
        check_image_shape(task, self.kind, (1, 28, 28))
        with seeded_initialisation(generator):
            return nn.Sequential(
                nn.Conv2d(1, 32, kernel_size=7, padding=3),
                activation_layer(self.activation),
                nn.MaxPool2d(2),
                nn.Conv2d(32, 64, kernel_size=3, padding=1),
                activation_layer(self.activation),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(64 * 7 * 7, task.classes),
            )
