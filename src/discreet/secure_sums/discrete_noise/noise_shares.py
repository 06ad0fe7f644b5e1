"""One share of integer noise for each client, in the shape of a model."""

from collections.abc import Callable, Sequence

import torch

from discreet.params import Params, count_values, unflatten
from discreet.secure_sums.discrete_noise.chunks import Integers


def draw_noise_shares(
    like: Params, keys: Sequence[bytes], draw: Callable[..., Integers], device: torch.device
) -> Params:
    """For each client's key a row of integers in the shape of `like`, whatever the order of its names; int64.

    `draw` is `skellam` or `discrete_gaussian` with a variance and a source.
    """
    rows = torch.stack([torch.from_numpy(draw(key, shape=(count_values(like),))) for key in keys])
    return unflatten(rows.to(device), like)
