"""How an example's gradient is bounded where a step must stay non-expansive: by its margin, not by its norm."""

import math

import torch
from torch import Tensor

from discreet.algorithms.clipping import ROUNDING

MAX_GRADIENT_NORM = math.sqrt(2)  # no gradient of cross-entropy in the logits is longer
SMOOTHNESS = 0.5  # of the clipped loss in the logits
TINY = 1e-30  # an example that is certain has no gradient, instead of 0/0


def clip_by_margin(logits: Tensor, targets: Tensor, norm: float) -> Tensor:
    """The gradient G = p − e_y of cross-entropy in the logits, times min(1, c/r): r = 1 − p_y and c = norm/√2.

    Guarantee: no row is longer than `norm`. As a function of the logits it is the gradient of a convex, ½-smooth
    function, which clipping G by its own norm is not (docs/notes/local_steps.md, Lemmas 1 and 2).
    """
    own = torch.zeros_like(logits).scatter_(-1, targets[..., None], 1)
    others = logits.softmax(dim=-1) * (1 - own)
    wrong = others.sum(dim=-1, keepdim=True)  # r; 1 − p_y would cancel
    most = ROUNDING * norm / MAX_GRADIENT_NORM
    return (others - wrong * own) * (most / wrong.clamp(min=TINY)).clamp(max=1)
