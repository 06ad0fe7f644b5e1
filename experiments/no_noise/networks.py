"""Pixels as the public code has them."""

import torch
from torch import nn


def raw_pixels() -> nn.Module:
    """From 0 to 255 instead of 0 to 1."""
    layer = nn.Conv2d(1, 1, kernel_size=1, bias=False)
    layer.weight.data = torch.full((1, 1, 1, 1), 255.0)
    return layer
