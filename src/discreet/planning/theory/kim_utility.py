"""How well federated SGD with local noise is proved to learn: paper 001's utility, and where it is proved."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, Multiplier, part

CLIPPED = (
    "C = {clip:g} is below G = {bound:g}: clipped gradients are biased, and the proof needs them to point where whole "
    "ones do"
)
STEPS_TOO_SHORT = "C = {clip:g} is above G = {bound:g}: steps of G/(Cλt) are then too short for the proof"


@part
class Learning:
    """A μ-smooth, λ-strongly convex loss over d weights with gradients of norm at most G, learned for T rounds.

    Clients send gradients clipped to C, and weigh by their expected batches, so the loss is weighted by q_k|D_k| too.
    """

    rounds: Count
    dimension: Count
    clip_norm: Multiplier = 1.0
    gradient_bound: Multiplier = 5.0
    smoothness: Multiplier = 1.0
    convexity: Multiplier = 1.0

    def __post_init__(self) -> None:
        if self.convexity > self.smoothness:
            raise InvalidInput(
                f"No loss is {self.convexity:g}-strongly convex and only {self.smoothness:g}-smooth: convexity must be "
                "at most the smoothness."
            )


class Utility(NamedTuple):
    """U(T) = 1/E[loss − least loss] is at least `printed`, or so the paper says, and at least `proved`."""

    printed: float
    proved: float
    valid: bool
    reason: str  # why not


def utility(noise_variance: float, learning: Learning, second_moment: float = 1.0) -> Utility:
    """Both, for noise of variance C²σ² on each coordinate of the average: see `averaged`."""
    clip, most = learning.clip_norm, learning.gradient_bound
    why = "" if clip == most else CLIPPED if clip < most else STEPS_TOO_SHORT
    return Utility(
        printed=printed_utility(noise_variance, learning),
        proved=proved_utility(noise_variance, learning, second_moment),
        valid=not why,
        reason=why.format(clip=clip, bound=most),
    )


def printed_utility(noise_variance: float, learning: Learning) -> float:
    """U(T) ≥ λ²T/(μG²)·min{1/2, 1/(1 + dσ²)} with steps η_t = G/(Cλt) (paper 001).

    It takes for granted that ⟨E clip(g), w − w*⟩ ≥ (C/G)·⟨∇L, w − w*⟩, which is false for clipped stochastic gradients.
    """
    scale = learning.convexity**2 * learning.rounds / (learning.smoothness * learning.gradient_bound**2)
    return scale * min(0.5, 1 / (1 + learning.dimension * noise_variance))


def proved_utility(noise_variance: float, learning: Learning, second_moment: float = 1.0) -> float:
    """U(T) ≥ λ²T/(μ·max{2G², mG² + dC²σ²}) with steps η_t = 1/(λt), where C ≥ G, so that nothing is clipped; else 0.

    The paper's own proof with the clip left out: a_{t+1} ≤ (1 − 2/t)·a_t + (mG² + dC²σ²)/(λ²t²) for a_t = E‖w_t − w*‖²,
    a_1 ≤ 4G²/λ², and loss − least loss ≤ μ·a_T/2. Batches are never empty; E‖gradient‖² ≤ m·G², m = `second_moment`.
    """
    if learning.clip_norm < learning.gradient_bound:
        return 0.0
    most = learning.gradient_bound**2
    noisy = second_moment * most + learning.dimension * learning.clip_norm**2 * noise_variance
    return learning.convexity**2 * learning.rounds / (learning.smoothness * max(2 * most, noisy))


def average_variance(weights: Sequence[float], noise_variances: Sequence[float], clients: Sequence[int]) -> float:
    """σ² = Σ_k (|D_k|q_kσ_k)²/(Σ_k |D_k|q_k)² (paper 001): of the clients' average, by groups of clients who are alike.

    The weights are expected batches. The paper's own are the batches as drawn, which are not public.
    """
    whole = math.fsum(count * weight for count, weight in zip(clients, weights, strict=True))
    each = zip(clients, weights, noise_variances, strict=True)
    return math.fsum(count * (weight / whole) ** 2 * variance for count, weight, variance in each)
