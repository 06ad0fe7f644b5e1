"""The networks of the authors' code, rebuilt from their shapes (BhaskarSteve/pfl at commit 1f32f15).

Tempered sigmoids with s = 2, T = 2 and o = 1 are tanh. ScatterNet sees pixels from 0 to 255 there and from 0 to 1 here:
group normalisation forgets the factor but for its small constant, which is divided by 255² instead.
"""

from torch import Tensor, nn

RAW = 1e-5 / 255**2  # the constant of GroupNorm for pixels from 0 to 1
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tempered_sigmoid": nn.Tanh}


def standardise(means: list[float], deviations: list[float]) -> nn.Module:
    """Pixels less published means, over published deviations, channel by channel."""
    channels = len(means)
    layer = nn.Conv2d(channels, channels, kernel_size=1, groups=channels)
    mean, deviation = Tensor(means), Tensor(deviations)
    layer.weight.data = (1 / deviation).view(channels, 1, 1, 1)
    layer.bias = nn.Parameter(-mean / deviation)
    return layer


def grey_cnn(activation: str) -> nn.Module:
    """10,650 parameters; the dense layer has ReLU whatever the activation is."""
    act = ACTIVATIONS[activation]
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=8, stride=2),
        act(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=4, stride=2, padding=1),
        act(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def colour_cnn(activation: str) -> nn.Module:
    """605,226 parameters in eight convolutions."""
    act = ACTIVATIONS[activation]
    layers: list[nn.Module] = []
    before = 3
    for width in (32, 64, 128):
        for channels in (before, width):
            layers += [nn.Conv2d(channels, width, kernel_size=3, padding=1), act()]
        layers.append(nn.AvgPool2d(2))
        before = width
    layers += [nn.Conv2d(128, 256, kernel_size=3, padding=1), act(), nn.Conv2d(256, 10, kernel_size=3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def scatter_linear(features: int) -> nn.Module:
    """Normalised in 27 groups of neighbouring features, with a learned factor and offset for each feature."""
    return nn.Sequential(nn.Flatten(), nn.GroupNorm(27, features, eps=RAW), nn.Linear(features, 10))


def scatter_cnn_grey() -> nn.Module:
    """20,940 parameters."""
    return nn.Sequential(
        nn.GroupNorm(27, 81, eps=RAW),
        nn.Conv2d(81, 16, kernel_size=3, stride=2, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def scatter_cnn_colour() -> nn.Module:
    """180,016 parameters."""
    return nn.Sequential(
        nn.GroupNorm(27, 243, eps=RAW),
        nn.Conv2d(243, 64, kernel_size=3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 64, kernel_size=3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 2 * 2, 10),
    )
