"""The announced norm that updates are measured in: a clip norm, or the bound that training guarantees."""

import torch

from discreet.algorithms.broadcast import CLIP
from discreet.params import Params

SMALLEST = 1e-30  # updates are divided by the norm


def init_clip(params: Params) -> Params:
    """Return the state that holds the announced norm, on the model's device."""
    return {CLIP: torch.zeros((), dtype=torch.float64, device=next(iter(params.values())).device)}


def announce_clip(state: Params, clip_norm: float | None, bound: float | None) -> Params:
    """Announce the mechanism's clip norm, else the trainer's bound; positive even if a rate has decayed to zero."""
    norm = clip_norm or bound
    assert norm is not None  # an algorithm without either is refused when it is built
    return {CLIP: torch.full_like(state[CLIP], max(norm, SMALLEST))}
