"""ResNet-18 for small images (He et al. 2016) with group normalisation, because batch normalisation mixes examples."""

from typing import Literal

import torch
from torch import Tensor, nn

from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.models.networks.model_shape import input_size, seeded_initialisation
from discreet.part import part

GROUPS = 32
SMALLEST = 8  # pixels per side: after three halvings one is left


@part
class Resnet18:
    """11,173,962 parameters for 10 classes, 11,220,132 for 100. The first layer keeps the resolution, as for CIFAR."""

    kind: Literal["resnet18"] = "resnet18"

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        """Build the network for a task. Its initial weights come from `generator`."""
        input_size(task)
        shape = task.input_shape
        if len(shape) != 3 or min(shape[1:]) < SMALLEST:
            raise InvalidInput(
                f"resnet18 needs images as (channels, height, width) of at least {SMALLEST} pixels per side, and task "
                f"{task.name!r} has inputs of the shape {shape}.",
                fix="Use model mlp or linear, or another task.",
            )
        with seeded_initialisation(generator):
            return nn.Sequential(*_residual_layers(shape[0]), PixelMean(), nn.Linear(512, task.classes))


def _residual_layers(channels: int) -> list[nn.Module]:
    """Build the first convolution and the eight blocks."""
    layers: list[nn.Module] = [_convolution(channels, 64, size=3, stride=1), nn.GroupNorm(GROUPS, 64), nn.ReLU()]
    before = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [ResidualBlock(before, width, stride), ResidualBlock(width, width, 1)]
        before = width
    return layers


class ResidualBlock(nn.Module):
    """Two convolutions and a shortcut. The shortcut is a convolution too if the shape changes."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(before, width, size=3, stride=stride)
        self.first_norm = nn.GroupNorm(GROUPS, width)
        self.second = _convolution(width, width, size=3, stride=1)
        self.second_norm = nn.GroupNorm(GROUPS, width)
        self.shortcut = (
            nn.Identity()
            if stride == 1 and before == width
            else nn.Sequential(_convolution(before, width, size=1, stride=stride), nn.GroupNorm(GROUPS, width))
        )

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block to a batch of images."""
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inner)) + self.shortcut(x))


class PixelMean(nn.Module):
    """The mean over all pixels of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        """Average a batch of images over its pixels."""
        return x.mean(dim=(2, 3))


def _convolution(before: int, after: int, *, size: int, stride: int) -> nn.Module:
    return nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)
