"""Clip the gradient of cross-entropy by its margin instead of its norm, which keeps steps non-expansive."""

from __future__ import annotations

import math

from discreet.algorithms.clipping import ROUNDING
from discreet.lazy_torch import Tensor, torch

MAX_GRADIENT_NORM = math.sqrt(2)  # of cross-entropy in the logits
SMOOTHNESS = 0.5  # of the clipped loss in the logits
TINY = 1e-30  # avoids 0/0 for an example that is certain


def clip_by_margin(logits: Tensor, targets: Tensor, norm: float) -> Tensor:
    """Return the gradient G = p − e_y of cross-entropy in the logits, times min(1, c/r): r = 1 − p_y and c = norm/√2.

    Guarantee: no row has a norm above `norm`. As a function of the logits it is the gradient of a convex, ½-smooth
    function, which G clipped by its norm is not (docs/notes/local_steps.md, Lemmas 1 and 2).
    """
    own = torch.zeros_like(logits).scatter_(-1, targets[..., None], 1)
    others = logits.softmax(dim=-1) * (1 - own)
    wrong = others.sum(dim=-1, keepdim=True)  # r; 1 − p_y would cancel
    most = ROUNDING * norm / MAX_GRADIENT_NORM
    return (others - wrong * own) * (most / wrong.clamp(min=TINY)).clamp(max=1)
