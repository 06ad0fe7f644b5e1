"""The small network for CIFAR-10: noise on the paper's 11 million parameters drowns what 500 clients have to say."""

from torch import nn


def small_cnn() -> nn.Module:
    """19,626 parameters, normalised in groups."""
    layers: list[nn.Module] = []
    before = 3
    for width in (16, 32, 32):
        convolution = nn.Conv2d(before, width, kernel_size=3, padding=1)
        layers += [convolution, nn.GroupNorm(4, width), nn.ReLU(), nn.MaxPool2d(2)]
        before = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 4 * 4, 10))
