"""A block of clients' tensors as one row of doubles for each client, and back."""

import torch
from torch import Tensor

from discreet.params import Params


def flattened(block: Params) -> Tensor:
    """[clients, d] in float64, by the sorted names: float32 has too few digits for what follows a large scale."""
    return torch.cat([block[name].flatten(1) for name in sorted(block)], dim=1).to(torch.float64)


def restored(flat: Tensor, like: Params) -> Params:
    """What `flattened` made of tensors in the shape of `like`, each with the leading axes of `flat`."""
    names = sorted(like)
    parts = dict(zip(names, torch.split(flat, [like[name].numel() for name in names], dim=-1), strict=True))
    return {name: parts[name].reshape(*flat.shape[:-1], *value.shape) for name, value in like.items()}
