"""Heikkilä 2025: the size of a cohort whose clients share the noise, when some collude or drop out.

What is proved: Theorem 4.7 and Example 4.3 give the noise of a sum whose N clients each add σ/√N.
What is wrong: every client is taken for honest and present, and Theorem 4.6 claims the sum's ε for several steps at a
client's own state. What we use: the noise of the honest clients that remain, and for several steps at a client's own
state the client's own noise alone.
"""

import math
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, Index, Rate, part
from discreet.planning.theory import heikkila_noise_shares
from discreet.planning.theory.heikkila_model_averaging import paper_epsilon
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import Event, sampled_gaussian

OWN_STATE_NOTE = (
    "Theorem 4.6 claims the sum's ε also for several steps at a client's own state. That state carries the client's "
    "own noise alone, and the certified ε counts only that (examples/counterexample.py)"
)
BROADCAST_NOTE = "With one step per round, or all gradients of a round at the broadcast model, the sum's ε is certified"
HONEST_NOTE = (
    "The paper takes every client for honest and present. A colluding client subtracts its share from the sum, and a "
    "client that drops out never adds it; a share of σ/√(N − c − d) allows for c and d of them"
)


@part
class ClientWork:
    """The work of every client: `steps` Poisson batches at `sampling_rate` in each of `rounds` rounds."""

    sampling_rate: Rate
    steps: Count
    rounds: Count

    def event(self, noise_multiplier: float) -> Event:
        """Return all steps of all rounds with this noise, which is counted only up to the largest we account for."""
        return sampled_gaussian(min(noise_multiplier, calibration.MOST), self.sampling_rate, self.steps * self.rounds)


@part
class Cohort:
    """The clients of a round, at most `colluding` of which collude and `dropouts` drop out."""

    clients: Count
    colluding: Index = 0
    dropouts: Index = 0

    @property
    def honest(self) -> int:
        """The clients whose noise is certainly present, and unknown to the observer."""
        return self.clients - self.colluding - self.dropouts


class CohortRow(NamedTuple):
    """What a client's share of the noise comes to in a cohort.

    Attributes:
        honest: The clients whose noise certainly counts.
        share: A client's noise multiplier.
        noise: The sum's noise multiplier, from the honest clients alone.
        epsilon: Certified for that noise, where gradients are taken at the broadcast model.
        full_noise: The sum's noise multiplier if all clients contribute and none colludes.
        full_epsilon: The ε for the full noise, which is how the paper counts clients.
        paper_epsilon: The ε for the full noise by the paper's accountant.
        mean_noise: The standard deviation per coordinate of the mean over all clients, in clip norms.
        own_state_epsilon: Certified for steps at a client's own state.
    """

    clients: int
    honest: int
    share: float
    noise: float
    epsilon: float
    full_noise: float
    full_epsilon: float
    paper_epsilon: float
    mean_noise: float
    own_state_epsilon: float


def calibrate_noise(work: ClientWork, epsilon: float, delta: float) -> float:
    """Return the least noise multiplier of a sum that keeps all rounds within (ε, δ)."""
    return calibration.calibrate_noise(work.event, EpsilonTarget(epsilon=epsilon, delta=delta))


def planned_share(noise_multiplier: float, cohort: Cohort) -> float:
    """σ/√(N − c − d): enough noise remains (Heikkilä 2025, Section 3.3, after Heikkilä et al. 2017)."""
    return heikkila_noise_shares.noise_share(
        noise_multiplier, cohort.clients, colluding=cohort.colluding, dropouts=cohort.dropouts
    )


def paper_share(noise_multiplier: float, cohort: Cohort) -> float:
    """σ/√N (Heikkilä 2025, Theorem 4.7): enough if every client contributes and none colludes."""
    return heikkila_noise_shares.noise_share(noise_multiplier, cohort.clients)


def evaluate_share(work: ClientWork, cohort: Cohort, share: float, delta: float) -> CohortRow:
    """Evaluate what a share of the noise certifies.

    `epsilon` = ε(σ_LDP·√(N − c − d)) over all steps: certified against observers who see only sums, of gradients at the
    broadcast model or of one step per round. `full_epsilon` = ε(σ_LDP·√N) (Heikkilä 2025, Theorem 4.6 and Example 4.3).
    `own_state_epsilon` is the sum's for one step, and ε(σ_LDP) for more: there Theorem 4.6 is wrong.
    """
    remaining = heikkila_noise_shares.sum_noise(share, cohort.clients - cohort.dropouts, colluding=cohort.colluding)
    full = heikkila_noise_shares.sum_noise(share, cohort.clients)
    epsilon = accountant.epsilon(work.event(remaining), delta)
    return CohortRow(
        clients=cohort.clients,
        honest=cohort.honest,
        share=share,
        noise=remaining,
        epsilon=epsilon,
        full_noise=full,
        full_epsilon=accountant.epsilon(work.event(full), delta),
        paper_epsilon=paper_epsilon(work.event(full), delta),
        mean_noise=full / cohort.clients,
        own_state_epsilon=epsilon if work.steps == 1 else accountant.epsilon(work.event(share), delta),
    )


def epsilon_with_dropouts(work: ClientWork, cohort: Cohort, dropouts: int, share: float, delta: float) -> float:
    """ε(σ_LDP·√(N − c − d)) of the sum when `dropouts` clients drop out, whatever number the share allows for."""
    noise = heikkila_noise_shares.sum_noise(share, cohort.clients - dropouts, colluding=cohort.colluding)
    return accountant.epsilon(work.event(noise), delta)


def feasible_cohorts(sizes: tuple[int, ...], colluding: int, dropouts: int) -> tuple[Cohort, ...]:
    """Return cohorts of these sizes, without those too small to leave one honest client.

    Raises:
        InvalidInput: None of the sizes is large enough.
    """
    cohorts = (Cohort(clients=size, colluding=colluding, dropouts=dropouts) for size in sizes)
    feasible = tuple(cohort for cohort in cohorts if cohort.honest >= 1)
    if not feasible:
        raise InvalidInput(
            f"Of at most {max(sizes)} clients, {colluding} collude and {dropouts} drop out; at least one has to remain "
            "to add noise.",
            fix="Allow for fewer, or for a larger cohort.",
        )
    return feasible


def smallest_cohort(target: float, share: float, *, colluding: int = 0, dropouts: int = 0) -> int:
    """Return how many clients with this share give the sum its target noise: N = ⌈(σ/σ_LDP)²⌉ + c + d."""
    return math.ceil((target / share) ** 2 * (1 - 1e-12)) + colluding + dropouts
