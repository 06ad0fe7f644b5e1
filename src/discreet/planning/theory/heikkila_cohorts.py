"""What the size of a cohort is worth when its clients share the noise, and some collude or stay away: paper 002."""

import math
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, Index, Rate, part
from discreet.planning.theory import heikkila_noise_shares
from discreet.planning.theory.heikkila_model_averaging import paper_epsilon
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import Event, sampled_gaussian

OWN_STATE = (
    "Theorem 4.6 claims the sum's ε also for several steps at a client's own state. That state carries the client's "
    "own noise alone, and so does what is certified (examples/counterexample.py)"
)
BROADCAST = "With one step a round, or all gradients of a round at the broadcast model, the sum's ε is certified"
HONEST = (
    "The paper takes every client for honest and present. One who colludes takes its share off the sum, and one who "
    "drops out never adds it; a share of σ/√(N − c − d) allows for c and d of them"
)


@part
class ClientWork:
    """What every client does: Poisson batches at `sampling_rate`, `steps` of them in each of `rounds`."""

    sampling_rate: Rate
    steps: Count
    rounds: Count

    def event(self, noise_multiplier: float) -> Event:
        """All steps of all rounds, each at this noise, of which no more than the most is counted."""
        return sampled_gaussian(min(noise_multiplier, calibration.MOST), self.sampling_rate, self.steps * self.rounds)


@part
class Cohort:
    """So many clients in a round, of whom at most `colluding` tell what they know and `dropouts` don't deliver."""

    clients: Count
    colluding: Index = 0
    dropouts: Index = 0

    @property
    def left(self) -> int:
        """Those whose noise is surely there, and unknown to whoever looks."""
        return self.clients - self.colluding - self.dropouts


class CohortRow(NamedTuple):
    """What one share of noise a client comes to, in a cohort."""

    clients: int
    left: int
    share: float  # a client's noise multiplier
    noise: float  # the sum's, of those who are left
    epsilon: float  # certified for that, where gradients are at the broadcast model
    whole: float  # the sum's, if all come and none tells
    counted: float  # ε for that, as the paper counts whom
    claimed: float  # the same by the paper's accountant
    mean: float  # deviation of a coordinate of the mean over all, in clips
    own_state: float  # ε certified for steps at a client's own state


def calibrate_noise(work: ClientWork, epsilon: float, delta: float) -> float:
    """The least noise multiplier of a sum that keeps all rounds within (ε, δ)."""
    return calibration.calibrate_noise(work.event, EpsilonTarget(epsilon=epsilon, delta=delta))


def planned_share(noise_multiplier: float, cohort: Cohort) -> float:
    """σ/√(N − c − d): enough of it is left (paper 002, Section 3.3, by way of Heikkilä et al. 2017)."""
    return heikkila_noise_shares.noise_share(
        noise_multiplier, cohort.clients, colluding=cohort.colluding, dropouts=cohort.dropouts
    )


def paper_share(noise_multiplier: float, cohort: Cohort) -> float:
    """σ/√N (paper 002, Theorem 4.7): enough if everybody comes and nobody tells."""
    return heikkila_noise_shares.noise_share(noise_multiplier, cohort.clients)


def evaluate_share(work: ClientWork, cohort: Cohort, share: float, delta: float) -> CohortRow:
    """What a share is worth.

    `epsilon` = ε(σ_LDP·√(N − c − d)) over all steps: certified for sums that alone are seen, of gradients at the
    broadcast model, or of one step a round. `counted` = ε(σ_LDP·√N) (paper 002, Theorem 4.6 and Example 4.3).
    `own_state` is the sum's too for one step, and else ε(σ_LDP): there Theorem 4.6 is wrong.
    """
    there = cohort.clients - cohort.dropouts
    left = heikkila_noise_shares.sum_noise(share, there, colluding=cohort.colluding)
    whole = heikkila_noise_shares.sum_noise(share, cohort.clients)
    epsilon = accountant.epsilon(work.event(left), delta)
    return CohortRow(
        clients=cohort.clients,
        left=cohort.left,
        share=share,
        noise=left,
        epsilon=epsilon,
        whole=whole,
        counted=accountant.epsilon(work.event(whole), delta),
        claimed=paper_epsilon(work.event(whole), delta),
        mean=whole / cohort.clients,
        own_state=epsilon if work.steps == 1 else accountant.epsilon(work.event(share), delta),
    )


def epsilon_with_dropouts(work: ClientWork, cohort: Cohort, dropouts: int, share: float, delta: float) -> float:
    """ε(σ_LDP·√(N − c − d)) of the sum when so many drop out, however many the share was for."""
    left = heikkila_noise_shares.sum_noise(share, cohort.clients - dropouts, colluding=cohort.colluding)
    return accountant.epsilon(work.event(left), delta)


def feasible_cohorts(sizes: tuple[int, ...], colluding: int, dropouts: int) -> tuple[Cohort, ...]:
    """Cohorts of these sizes; those too small for so many to be missing are left out, if any is not."""
    found = tuple(Cohort(clients=size, colluding=colluding, dropouts=dropouts) for size in sizes)
    able = tuple(each for each in found if each.left >= 1)
    if not able:
        raise InvalidInput(
            f"Of at most {max(sizes)} clients, {colluding} collude and {dropouts} drop out; one has to be left to "
            "bring noise.",
            fix="Allow for fewer, or for a larger cohort.",
        )
    return able


def smallest_cohort(target: float, share: float, *, colluding: int = 0, dropouts: int = 0) -> int:
    """How many clients it takes for so small a share to leave the sum its noise: N = ⌈(σ/σ_LDP)²⌉ + c + d."""
    return math.ceil((target / share) ** 2 * (1 - 1e-12)) + colluding + dropouts
