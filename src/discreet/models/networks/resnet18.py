"""ResNet-18 for small pictures (He et al. 2016), normalised in groups: a batch norm would mix examples."""

from typing import Literal

import torch
from torch import Tensor, nn

from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.models.networks.model_shape import input_size, seeded_initialisation
from discreet.part import part

GROUPS = 32
SMALLEST = 8  # pixels a side: three halvings leave one


@part
class Resnet18:
    """11,173,962 parameters for ten classes, 11,220,132 for a hundred. The stem keeps the resolution, as for CIFAR."""

    kind: Literal["resnet18"] = "resnet18"

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        input_size(task)
        shape = task.input_shape
        if len(shape) != 3 or min(shape[1:]) < SMALLEST:
            raise InvalidInput(
                f"resnet18 takes pictures as (channels, height, width) of at least {SMALLEST} pixels a side, and task "
                f"{task.name!r} has inputs of the shape {shape}.",
                fix="Use model mlp or linear, or another task.",
            )
        with seeded_initialisation(generator):
            return nn.Sequential(*_layers(shape[0]), Mean(), nn.Linear(512, task.classes))


def _layers(channels: int) -> list[nn.Module]:
    layers: list[nn.Module] = [_convolution(channels, 64, size=3, stride=1), nn.GroupNorm(GROUPS, 64), nn.ReLU()]
    before = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(before, width, stride), Block(width, width, 1)]
        before = width
    return layers


class Block(nn.Module):
    """Two convolutions beside a shortcut, which is one too where the shape changes."""

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
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inner)) + self.shortcut(x))


class Mean(nn.Module):
    """Over all pixels of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=(2, 3))


def _convolution(before: int, after: int, *, size: int, stride: int) -> nn.Module:
    return nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)
