"""Kim, Günlü & Schaefer 2021: a lower bound on the utility of federated SGD with local noise.

What is proved: nothing where gradients are clipped. What is wrong: the proof takes the expectation of a clipped
stochastic gradient to point along the true gradient. What we use: the printed bound, and beside it the same proof
without clipping, which holds where C ≥ G (`proved_utility`).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, Multiplier, part

CLIPPED = (
    "C = {clip:g} is below G = {bound:g}: clipped gradients are biased, and the proof needs them to point in the "
    "direction of unclipped ones"
)
STEPS_TOO_SHORT = "C = {clip:g} is above G = {bound:g}: steps of G/(Cλt) are too short for the proof"


@part
class Learning:
    """A μ-smooth, λ-strongly convex loss over d weights with gradients of norm at most G, trained for T rounds.

    Clients send gradients clipped to C and are weighted by their expected batches, so the loss is weighted by q_k|D_k|
    too.
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
    """Lower bounds on U(T) = 1/E[loss − least loss].

    Attributes:
        printed_bound: The paper's.
        proved_bound: What its proof gives without clipping; 0 where gradients are clipped.
        valid: Whether the paper's proof holds.
        reason: Why it doesn't.
    """

    printed_bound: float
    proved_bound: float
    valid: bool
    reason: str


def utility(noise_variance: float, learning: Learning, second_moment: float = 1.0) -> Utility:
    """Return both bounds for noise of variance C²σ² on each coordinate of the average (`average_variance`)."""
    clip, most = learning.clip_norm, learning.gradient_bound
    reason = "" if clip == most else CLIPPED if clip < most else STEPS_TOO_SHORT
    return Utility(
        printed_bound=printed_utility(noise_variance, learning),
        proved_bound=proved_utility(noise_variance, learning, second_moment),
        valid=not reason,
        reason=reason.format(clip=clip, bound=most),
    )


def printed_utility(noise_variance: float, learning: Learning) -> float:
    """U(T) ≥ λ²T/(μG²)·min{1/2, 1/(1 + dσ²)} with steps η_t = G/(Cλt), as printed.

    It assumes that ⟨E clip(g), w − w*⟩ ≥ (C/G)·⟨∇L, w − w*⟩, which is false for clipped stochastic gradients.
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
    """Return the noise variance of the clients' average: σ² = Σ_k (|D_k|q_kσ_k)²/(Σ_k |D_k|q_k)².

    Args:
        weights: The expected batch of a client in each group. The paper weights by the batches as drawn, which are not
            public.
        clients: The number of clients in each group.
    """
    total = math.fsum(count * weight for count, weight in zip(clients, weights, strict=True))
    groups = zip(clients, weights, noise_variances, strict=True)
    return math.fsum(count * (weight / total) ** 2 * variance for count, weight, variance in groups)
