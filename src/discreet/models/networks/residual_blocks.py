"""The blocks of a residual network (He et al. 2016) with group normalisation."""

import torch
from torch import Tensor, nn

GROUPS = 32


def residual_layers(channels: int) -> list[nn.Module]:
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
