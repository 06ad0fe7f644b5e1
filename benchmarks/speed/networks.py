"""The networks of the cases, and synthetic data that they learn from."""

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call

from discreet.data.federation import Federation
from discreet.models.networks.residual_blocks import PixelMean, residual_layers
from discreet.params import Params

MakeNetwork: TypeAlias = Callable[[], nn.Module]

SEED = 0
CHECKED_EXAMPLES = 512  # on which losses are compared


def pfl_cnn() -> nn.Module:
    """The network of pfl-research's CIFAR-10 benchmark, with 1,626,442 parameters."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(12544, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )


def five_by_five_cnn() -> nn.Module:
    """Two convolutions of 5 × 5 and a layer of 512, as in McMahan et al., for 32 × 32 pixels: 878,538 parameters."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1600, 512),
        nn.ReLU(),
        nn.Linear(512, 10),
    )


def resnet18() -> nn.Module:
    """ResNet-18 with group normalisation, for 32 × 32 pixels: 11,173,962 parameters."""
    return nn.Sequential(*residual_layers(3), PixelMean(), nn.Linear(512, 10))


def femnist_cnn() -> nn.Module:
    """The network of Fu et al. for FEMNIST: 214,590 parameters for 62 classes."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 7, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 62),
    )


def papernot_cnn() -> nn.Module:
    """The 26,010-parameter network of Papernot et al. for 28 × 28 images."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=2),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def linear(inputs: int, classes: int) -> MakeNetwork:
    return lambda: nn.Linear(inputs, classes)


class LowRankLinear(nn.Module):
    """A frozen linear layer with a trained product of two narrow ones beside it (LoRA)."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs).requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.base(x) + x @ self.down.T @ self.up.T
        return out


class AttentionBlock(nn.Module):
    """Self-attention and two layers behind it, whose projections are LowRankLinear."""

    def __init__(self, width: int, heads: int, rank: int) -> None:
        super().__init__()
        self.heads = heads
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = LowRankLinear(width, 3 * width, rank)
        self.out = LowRankLinear(width, width, rank)
        self.wide, self.narrow = LowRankLinear(width, 4 * width, rank), LowRankLinear(4 * width, width, rank)

    def forward(self, x: Tensor) -> Tensor:
        shape = (x.shape[0], x.shape[1], self.heads, x.shape[2] // self.heads)
        query, key, value = (part.reshape(shape).transpose(1, 2) for part in self.mix(self.first_norm(x)).chunk(3, -1))
        weights = (query @ key.transpose(2, 3) / math.sqrt(shape[3])).softmax(dim=-1)
        x = x + self.out((weights @ value).transpose(1, 2).reshape(x.shape))
        out: Tensor = x + self.narrow(torch.relu(self.wide(self.second_norm(x))))
        return out


class LowRankTransformer(nn.Module):
    """A small transformer that classifies sequences; only its low-rank parts and its last layer are trained."""

    def __init__(self, words: int, length: int, width: int, blocks: int, classes: int, rank: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width).requires_grad_(False)
        self.places = nn.Parameter(torch.randn(length, width) / math.sqrt(width), requires_grad=False)
        self.blocks = nn.Sequential(*(AttentionBlock(width, 4, rank) for _ in range(blocks)))
        self.last = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.blocks(self.words(x) + self.places).mean(dim=1))
        return out


def seeded_network(make: MakeNetwork) -> nn.Module:
    """Build the network with the same weights for every side."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return make()


def image_federation(
    sizes: tuple[int, ...], shape: tuple[int, ...], classes: int, device: str, strength: float = 0.5
) -> Federation:
    """Random inputs around one centre for each class, `strength` deviations away: a model learns from them."""
    generator = torch.Generator().manual_seed(SEED)
    targets = torch.randint(classes, (sum(sizes),), generator=generator)
    centres = torch.randn(classes, *shape, generator=generator)
    inputs = torch.randn(sum(sizes), *shape, generator=generator).add_(centres[targets], alpha=strength)
    return Federation(inputs, targets, sizes).move_to(torch.device(device))


def text_federation(sizes: tuple[int, ...], length: int, words: int, classes: int, device: str) -> Federation:
    """Random sequences in which the words of the class are frequent."""
    generator = torch.Generator().manual_seed(SEED)
    targets = torch.randint(classes, (sum(sizes),), generator=generator)
    inputs = torch.randint(words, (sum(sizes), length), generator=generator)
    own = torch.rand(inputs.shape, generator=generator) < 0.5
    inputs = torch.where(own, (inputs // classes) * classes + targets[:, None], inputs).clamp_(max=words - 1)
    return Federation(inputs, targets, sizes).move_to(torch.device(device))


def checked_loss(module: nn.Module, params: Params, data: Federation) -> float:
    """Return the loss of these weights on examples of all clients, in float32 and without dropout."""
    every = max(1, len(data.targets) // CHECKED_EXAMPLES)
    inputs, targets = data.inputs[::every], data.targets[::every]
    was_training = module.training
    module.eval()
    with torch.no_grad():
        losses = nn.functional.cross_entropy(functional_call(module, params, (inputs,)), targets)
    module.train(was_training)
    return float(losses)
