"""The norm that updates are measured in, as a round announces it: a clip, or the bound that training keeps."""

import torch

from discreet.algorithms.broadcast import CLIP
from discreet.params import Params

SMALLEST = 1e-30  # to divide by


def init_clip(params: Params) -> Params:
    """A number on the model's device, in which each round's norm is announcement."""
    return {CLIP: torch.zeros((), dtype=torch.float64, device=next(iter(params.values())).device)}


def announce_clip(state: Params, clip_norm: float | None, bound: float | None) -> Params:
    """The mechanism's own clip, else the trainer's bound: not quite nothing where a rate has decayed to nothing."""
    found = clip_norm or bound
    assert found is not None  # an algorithm without either is refused when it is built
    return {CLIP: torch.full_like(state[CLIP], max(found, SMALLEST))}
