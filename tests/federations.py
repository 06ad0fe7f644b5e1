"""Small federations and losses that many tests share."""

import torch
from torch import Tensor

from discreet.algorithms.training import Loss
from discreet.data.federation import Federation
from discreet.params import Params

DOUBLE = torch.float64
CPU = torch.device("cpu")


def federation(
    *sizes: int, features: int = 5, classes: int = 3, seed: int = 0, dtype: torch.dtype = DOUBLE
) -> Federation:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(sum(sizes), features, generator=generator, dtype=dtype)
    targets = torch.randint(classes, (sum(sizes),), generator=generator)
    return Federation(inputs, targets, sizes)


def linear(features: int = 5, classes: int = 3, dtype: torch.dtype = DOUBLE) -> Params:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(classes, features, generator=generator, dtype=dtype) / 3
    return {"weight": weight, "bias": torch.zeros(classes, dtype=dtype)}


def cross_entropy(params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
    logits = torch.nn.functional.linear(inputs, params["weight"], params["bias"])
    return torch.nn.functional.cross_entropy(logits, targets, reduction="none")


def convolution(dtype: torch.dtype = DOUBLE) -> tuple[Params, Loss]:
    """A small network with pooling, for images of 1×8×8."""
    torch.manual_seed(3)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.GroupNorm(2, 4),
        torch.nn.Tanh(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 3),
    ).to(dtype)
    params = {name: value.detach().clone() for name, value in module.named_parameters()}

    def loss(values: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        logits = torch.func.functional_call(module, values, (inputs,))
        return torch.nn.functional.cross_entropy(logits, targets, reduction="none")

    return params, loss


def images(*sizes: int, dtype: torch.dtype = DOUBLE) -> Federation:
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(sum(sizes), 1, 8, 8, generator=generator, dtype=dtype)
    return Federation(inputs, torch.randint(3, (sum(sizes),), generator=generator), sizes)
