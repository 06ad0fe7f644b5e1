"""How noisy a round is if clients add noise in training: a ratio for plans, computed from the configuration."""

import math
from collections.abc import Sequence
from typing import Any

from discreet.algorithms import per_client
from discreet.algorithms.honest_upload import HonestUpload
from discreet.algorithms.training.per_round import value_in_round


def noise_to_signal(part: Any, weights: Sequence[float], batches: Sequence[float], *, momentum: float) -> float:
    """Return √(Σ (w_k·s_k)²) ÷ Σ w_k·C_k over the clients, times √(Σc²) ÷ Σc over a round's steps.

    s_k = z_k·C_k ÷ b_k is the noise in a step's mean gradient, w_k a client's weight, and c how far a step moves the
    round's end: 1, or more by momentum.

    Args:
        part: A trainer with `steps`, `clip_norm` and `noise_multiplier`.
        weights: w_k.
        batches: b_k: q_k·n_k for DP-SGD, or 1 where the mean itself is clipped. A client with 0 is left out.
        momentum: Momentum of the steps.
    """
    clients = len(weights)
    noises, clips = (per_client.repeat_value(each, clients) for each in (part.noise_multiplier, part.clip_norm))
    each = list(zip(weights, noises, clips, batches, strict=True))
    noise = math.sqrt(sum((w * z * C / batch) ** 2 for w, z, C, batch in each if batch))
    signal = sum(w * C for w, _, C, batch in each if batch)
    reaches = _reaches(value_in_round(part.steps, 0), momentum)
    return noise / signal * (math.sqrt(sum(c * c for c in reaches)) / sum(reaches))


def honest_upload(part: Any, round: int, batch: float, clipped: float, *, momentum: float) -> HonestUpload:
    """Return the largest norm of an update and its noise, for a client with equal settings.

    Args:
        part: A trainer with `steps`, `clip_norm`, `noise_multiplier`, `learning_rate` and `schedule`.
        round: Number of the round, starting at 0.
        batch: b: what the noisy sum of a step is divided by.
        clipped: Most vectors of norm `clip_norm` in all sums of the round together.
        momentum: Momentum of the steps.
    """
    reaches = _reaches(value_in_round(part.steps, round), momentum)
    step = abs(part.learning_rate * part.schedule.factor(round)) * part.clip_norm / batch
    deviation = step * part.noise_multiplier * math.sqrt(sum(reach * reach for reach in reaches))
    return HonestUpload(norm=step * clipped * max(reaches), order=2, deviation=deviation)


def _reaches(steps: int, momentum: float) -> list[float]:
    """Return how far each step moves the round's end, from the last step to the first: 1, or more by momentum."""
    reaches, reach = [], 0.0
    for _ in range(steps):
        reach = 1 + momentum * reach
        reaches.append(reach)
    return reaches
