"""What clients' shares of noise protect in their sum: paper 002's Theorems 4.6 and 4.7 and its Appendix A.3.

All of it is for sums that alone are seen, and for gradients that are taken at what was broadcast, or one local step a
round. The paper has it for later steps at a client's own state too, and there it is wrong: that state carries the
client's own noise alone (examples/counterexample.py).
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
    """How one client trains in a round: a learning rate for each local step, and a clip, noise and rate of its own.

    noise_multiplier is of its own share: each of its steps has N(0, (noise_multiplier·clip_norm)²) on the sum.
    """

    learning_rates: Annotated[tuple[Positive, ...], Field(min_length=1)]
    clip_norm: Positive
    noise_multiplier: Multiplier
    sampling_rate: Rate = 1.0

    @property
    def steps(self) -> int:
        return len(self.learning_rates)

    @property
    def reach(self) -> float:
        """C·‖γ‖: the L2 norm, over the steps, of the most that one example adds in each."""
        return self.clip_norm * math.hypot(*self.learning_rates)

    @property
    def deviation(self) -> float:
        """Cσ·‖γ‖: of the noise in its update."""
        return self.noise_multiplier * self.reach


def noise_share(noise_multiplier: float, clients: int, *, colluding: int = 0, dropouts: int = 0) -> float:
    """A client's noise multiplier, for the sum to have `noise_multiplier`: σ_LDP = σ/√(N − c − d).

    Paper 002, Theorem 4.7, has c = d = 0; Heikkilä et al. (2017) have c. Exact for noise that can be divided without
    end: Gaussian, Skellam. The paper also counts Poisson-binomial noise to it, which is bounded, and so can't be.
    """
    return noise_multiplier / math.sqrt(_honest(clients, colluding, dropouts))


def sum_noise(share: float, contributed: int, *, colluding: int = 0) -> float:
    """The sum's noise multiplier against those who collude: σ_LDP·√(n − c), with n who really contributed.

    Paper 002, Example 4.3, has c = 0: it takes every client for honest, and one can subtract its own share.
    """
    return share * math.sqrt(_honest(contributed, colluding))


def noise_multipliers(clients: Sequence[Client], missing: int = 0) -> tuple[float, ...]:
    """What the sum of all updates has for an example of each client: z_v = √Σ_i (C_iσ_i‖γ_i‖)² / (C_v‖γ_v‖).

    With one step each and l_i = γ_1/γ_i the least of them is √Σ_i (C_iσ_i/(l_i·C*))², C* = max_i C_i/l_i (paper 002,
    A.3, Eqs. 15–19). The paper prints Σ_i (C_iσ_i/C*)², without l_i: for C = σ = 1 and l_2 = 10 that is 2, and true is
    1.01. `missing` clients, whoever they are, collude or drop out: of the others', the largest shares don't count.
    """
    if not 0 <= missing < len(clients):
        raise UnsoundCombination(
            f"Of {len(clients)} clients, {missing} may be missing, and one has to be left to protect.",
            fix="Allow for fewer.",
        )
    return tuple(
        math.hypot(client.deviation, *_others(clients, i, missing)) / client.reach for i, client in enumerate(clients)
    )


def round_events(clients: Sequence[Client], missing: int = 0) -> tuple[Event, ...]:
    """What a round of unlike clients releases of one example of each: S_v steps at rate q_v with multiplier z_v.

    Learning rates that differ by step change nothing where all clients have the same (paper 002, A.3, Eq. 14).

    Clients whose numbers of steps differ: paper 002 (A.3, Eqs. 20–21) fuses m batches of a client into one step, whose
    sensitivity is theirs together, and counts that as one Poisson batch. It is none: an example lies in K ~ Bin(m, q)
    of the batches, and N(0, 1) stands against Σ_k P[K = k]·N(k/z, 1), which tells more at ε = 0.
    Here the sum is cut up instead. Its noise is that of S_v independent parts, with variances as γ_s²; one goes with
    each of the client's batches, and everything else that is summed is public or independent of the example.

    Guarantee: the sum is a function of these S_v noisy batches, so what they cost bounds it. Without sampling and with
    equal learning rates nothing is lost: √S_v/z_v is the sum's own μ.
    """
    return tuple(
        sampled_gaussian(noise, client.sampling_rate, client.steps)
        for client, noise in zip(clients, noise_multipliers(clients, missing), strict=True)
    )


def covering_event(clients: Sequence[Client], missing: int = 0) -> Event:
    """One event that covers an example of any client: the most steps, the largest rate, the least noise.

    Paper 002 (A.3) says that differing sampling rates lead to differing guarantees. The largest rate covers all: with
    p ≤ q, (1−p)Q + pP = (p/q)·[(1−q)Q + qP] + (1−p/q)·Q, and hockey-stick divergences are jointly convex, so at every
    α ≥ 1 and in both directions p costs at most p/q of what q does.

    Guarantee: at least the ε of each of `events`.
    """
    return sampled_gaussian(
        min(noise_multipliers(clients, missing)),
        max(client.sampling_rate for client in clients),
        max(client.steps for client in clients),
    )


def local_event(client: Client) -> Event:
    """What a client's own noise protects, whatever its gradients are taken at and whoever looks: LDP."""
    return sampled_gaussian(client.noise_multiplier, client.sampling_rate, client.steps)


def _others(clients: Sequence[Client], of: int, missing: int) -> list[float]:
    """The deviations of those who are surely there and honest beside one client."""
    deviations = sorted(client.deviation for i, client in enumerate(clients) if i != of)
    return deviations[: len(deviations) - missing]


def _honest(clients: int, colluding: int, dropouts: int = 0) -> int:
    honest = clients - colluding - dropouts
    if colluding < 0 or dropouts < 0 or honest < 1:
        raise UnsoundCombination(
            f"Of {clients} clients, {colluding} collude and {dropouts} drop out; one has to be left to bring noise.",
            fix="Allow for fewer, or for a larger cohort.",
        )
    return honest
