"""Draw one share of integer noise for each client, in the shape of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from discreet.lazy_torch import torch
from discreet.params import Params, count_values, unflatten
from discreet.secure_sums.discrete_noise.chunks import Integers


def draw_noise_shares(
    like: Params, keys: Sequence[bytes], draw: Callable[..., Integers], device: torch.device
) -> Params:
    """Draw a row of int64 for each client's key, in the shape of `like`. The order of its names does not matter.

    `draw` is `draw_skellam` or `draw_discrete_gaussian` with a variance and a source.
    """
    rows = torch.stack([torch.from_numpy(draw(key, shape=(count_values(like),))) for key in keys])
    return unflatten(rows.to(device), like)
