"""Canaries for training on the features of a linear layer: each has a feature of its own, and a label that is wrong.

Such training computes gradients itself, so no loss can choose them. The first model can: it is certain of a wrong class
for every canary, by which its clipped gradient is as long as the clip allows, along the difference of two classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from discreet.algorithms.training.trainer import Loss
from discreet.audit.canary_data import Amplitudes, CanaryFederation, PlantedCanaries, Slots
from discreet.errors import Unsupported
from discreet.params import Params

CERTAIN = 30.0  # the logit of the wrong class
DOMINANT = 1e4  # a canary's feature over the bound, so that the constant of the bias counts for nothing


@dataclass(frozen=True)
class FeatureDirections:
    """Directions by coordinates: the weight of a canary's feature for the right class, less that for the wrong one."""

    right: Tensor
    wrong: Tensor

    def project(self, flat: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the product of a vector with each canary's direction."""
        seen = flat if mask is None else flat * mask
        return (seen[..., self.right] - seen[..., self.wrong]) / 2**0.5


def count_features(params: Params) -> int:
    """Return the number of features of a linear layer, each of which can be a canary's.

    Raises:
        Unsupported: The model is not one linear layer.
    """
    tables = [value for value in params.values() if value.dim() == 2]
    if len(tables) != 1 or len(tables[0]) < 2:
        raise Unsupported("This training takes one linear layer, and the model has other parameters.")
    return tables[0].shape[1]


def plant_features(
    slots: Slots, sizes: tuple[int, ...], present: Tensor, amplitudes: Amplitudes, params: Params, bound: float
) -> PlantedCanaries:
    """Plant canary i on feature i, with class 0 as its label and a model that is certain of class 1.

    Args:
        slots: Where canaries are.
        sizes: Public client sizes.
        present: Which canaries are present; the others are blank.
        amplitudes: Which canaries count: those with an amplitude.
        params: The shape of the model.
        bound: The norm that features are scaled to.
    """
    name = next(name for name, value in params.items() if value.dim() == 2)
    table = params[name]
    first = {key: torch.zeros_like(value) for key, value in params.items()}
    count, width = len(slots), table.shape[1]
    first[name][1, :count] = CERTAIN / bound
    inputs = torch.zeros(sum(sizes), width, dtype=table.dtype)
    counted = torch.zeros(len(inputs), dtype=torch.bool)
    for canary, rows in enumerate(slots.rows):
        inputs[rows.start : rows.stop, canary] = DOMINANT * bound
        counted[rows.start : rows.stop] = bool(present[canary]) and amplitudes.present != 0
    device = table.device
    data = CanaryFederation(
        inputs.to(device),
        torch.zeros(len(inputs), dtype=torch.int64, device=device),
        sizes,
        counted=counted.to(device),
        draws=torch.zeros(len(inputs), dtype=torch.int64, device=device),
    )
    start = sum(params[key].numel() for key in sorted(params) if key < name)  # as `flatten` orders them
    right = start + torch.arange(count, device=device)
    return PlantedCanaries(data, _linear_loss(name, params), FeatureDirections(right, right + width), first)


def _linear_loss(name: str, params: Params) -> Loss:
    """Return the cross-entropy of a linear layer whose inputs are its features."""
    bias = next((key for key in params if key != name), None)

    def loss(model: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        logits = inputs @ model[name].T
        if bias is not None:
            logits = logits + model[bias]
        return torch.nn.functional.cross_entropy(logits, targets, reduction="none")

    return loss
