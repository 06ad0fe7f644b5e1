"""One share of integer noise for each client, in the shape of a model."""

from collections.abc import Callable, Sequence

import torch

from discreet.discrete_noise.chunks import Integers
from discreet.params import Params, count


def shares(like: Params, keys: Sequence[bytes], draw: Callable[..., Integers], device: torch.device) -> Params:
    """For each client's key a row of integers in the shape of `like`, whatever the order of its names; int64.

    `draw` is `skellam` or `discrete_gaussian` with a variance and a source.
    """
    flat = torch.stack([torch.from_numpy(draw(key, shape=(count(like),))) for key in keys]).to(device)
    names = sorted(like)
    parts = dict(zip(names, torch.split(flat, [like[name].numel() for name in names], dim=1), strict=True))
    return {name: parts[name].reshape(len(flat), *value.shape) for name, value in like.items()}
