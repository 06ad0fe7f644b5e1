"""Heikkilä 2025: what clients' shares of noise protect in their sum; its Theorems 4.6 and 4.7 and Appendix A.3.

What is proved: shares of an infinitely divisible noise add up, so that each client needs only σ/√N of it.
What is wrong: Theorem 4.6 also covers later steps at a client's own state, which carries that client's own noise alone
(examples/counterexample.py); every client is taken for honest and present; and A.3 has two errors, named below.
What we use: all of it only for observers of sums, and for one local step per round or gradients at the broadcast model;
shares that allow for colluding clients and drop-outs; and a decomposition of the sum in place of A.3's fused batches.
"""

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from discreet.errors import UnsoundCombination
from discreet.part import Multiplier, Positive, Rate, part
from discreet.privacy.events import Event, sampled_gaussian


@part
class Client:
    """How one client trains in a round.

    Attributes:
        learning_rates: One for each local step.
        noise_multiplier: Of the client's own share: each step adds N(0, (noise_multiplier·clip_norm)²) to the sum.
        sampling_rate: The rate at which each step draws its examples.
    """

    learning_rates: Annotated[tuple[Positive, ...], Field(min_length=1)]
    clip_norm: Positive
    noise_multiplier: Multiplier
    sampling_rate: Rate = 1.0

    @property
    def steps(self) -> int:
        return len(self.learning_rates)

    @property
    def max_influence(self) -> float:
        """C·‖γ‖: the L2 norm, over the steps, of the most that one example adds in each."""
        return self.clip_norm * math.hypot(*self.learning_rates)

    @property
    def deviation(self) -> float:
        """Cσ·‖γ‖: the standard deviation of the noise in the client's update."""
        return self.noise_multiplier * self.max_influence


def noise_share(noise_multiplier: float, clients: int, *, colluding: int = 0, dropouts: int = 0) -> float:
    """Return a client's noise multiplier for the sum to have `noise_multiplier`: σ_LDP = σ/√(N − c − d).

    Heikkilä 2025, Theorem 4.7, has c = d = 0; Heikkilä et al. (2017) have c. Exact for infinitely divisible noise:
    Gaussian, Skellam. The paper also counts Poisson-binomial noise as such, which is bounded, and so can't be.
    """
    return noise_multiplier / math.sqrt(_count_honest(clients, colluding, dropouts))


def sum_noise(share: float, contributed: int, *, colluding: int = 0) -> float:
    """Return the sum's noise multiplier against colluding clients: σ_LDP·√(n − c), with n clients that contributed.

    Heikkilä 2025, Example 4.3, has c = 0: it takes every client for honest, but a client can subtract its own share.
    """
    return share * math.sqrt(_count_honest(contributed, colluding))


def noise_multipliers(clients: Sequence[Client], missing: int = 0) -> tuple[float, ...]:
    """Return what the sum of all updates has for an example of each client: z_v = √Σ_i (C_iσ_i‖γ_i‖)² / (C_v‖γ_v‖).

    With one step each and l_i = γ_1/γ_i the least of them is √Σ_i (C_iσ_i/(l_i·C*))², C* = max_i C_i/l_i (Heikkilä
    2025, A.3, Eqs. 15–19). The paper prints Σ_i (C_iσ_i/C*)², without l_i: for C = σ = 1 and l_2 = 10 that is 2, and
    the true value is 1.01.

    Args:
        missing: Clients that may collude or drop out. The largest shares of the others are not counted.
    """
    if not 0 <= missing < len(clients):
        raise UnsoundCombination(
            f"Of {len(clients)} clients, {missing} may be missing, and at least one has to remain to be protected.",
            fix="Allow for fewer.",
        )
    return tuple(
        math.hypot(client.deviation, *_sure_deviations(clients, i, missing)) / client.max_influence
        for i, client in enumerate(clients)
    )


def round_events(clients: Sequence[Client], missing: int = 0) -> tuple[Event, ...]:
    """Return what a round of differing clients releases about one example of each: S_v steps at rate q_v with z_v.

    Learning rates that differ by step change nothing where all clients have the same (Heikkilä 2025, A.3, Eq. 14).

    Clients with differing numbers of steps: the paper (A.3, Eqs. 20–21) fuses m batches of a client into one step,
    whose sensitivity is theirs together, and counts that as one Poisson batch. This is wrong: an example is in
    K ~ Bin(m, q) of the batches, and N(0, 1) is compared with Σ_k P[K = k]·N(k/z, 1), which reveals more at ε = 0.
    Here the sum is decomposed instead. Its noise is that of S_v independent parts, with variances as γ_s². One part
    goes with each of the client's batches, and everything else that is summed is public or independent of the example.

    Guarantee: the sum is a function of these S_v noisy batches, so their cost bounds it. Without sampling and with
    equal learning rates nothing is lost: √S_v/z_v is the sum's own μ.
    """
    return tuple(
        sampled_gaussian(noise, client.sampling_rate, client.steps)
        for client, noise in zip(clients, noise_multipliers(clients, missing), strict=True)
    )


def covering_event(clients: Sequence[Client], missing: int = 0) -> Event:
    """Return one event that covers an example of any client: the most steps, the largest rate, the least noise.

    Heikkilä 2025 (A.3) says that differing sampling rates lead to differing guarantees. The largest rate covers all:
    with p ≤ q, (1−p)Q + pP = (p/q)·[(1−q)Q + qP] + (1−p/q)·Q, and hockey-stick divergences are jointly convex, so at
    every α ≥ 1 and in both directions p costs at most p/q of what q does.

    Guarantee: at least the ε of each of `round_events`.
    """
    return sampled_gaussian(
        min(noise_multipliers(clients, missing)),
        max(client.sampling_rate for client in clients),
        max(client.steps for client in clients),
    )


def local_event(client: Client) -> Event:
    """Return what a client's own noise protects against any observer, wherever its gradients are taken (LDP)."""
    return sampled_gaussian(client.noise_multiplier, client.sampling_rate, client.steps)


def _sure_deviations(clients: Sequence[Client], own: int, missing: int) -> list[float]:
    """Return the deviations of the other clients that are certainly present and honest, in the worst case."""
    deviations = sorted(client.deviation for i, client in enumerate(clients) if i != own)
    return deviations[: len(deviations) - missing]


def _count_honest(clients: int, colluding: int, dropouts: int = 0) -> int:
    honest = clients - colluding - dropouts
    if colluding < 0 or dropouts < 0 or honest < 1:
        raise UnsoundCombination(
            f"Of {clients} clients, {colluding} collude and {dropouts} drop out; at least one has to remain to add "
            "noise.",
            fix="Allow for fewer, or for a larger cohort.",
        )
    return honest
