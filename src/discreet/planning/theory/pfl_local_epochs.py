"""PFL (Bhaskar et al. 2025): how a number of epochs is split into rounds; its Section 4.2 and Theorem 2.

What is proved: Theorem 2 bounds the loss through privacy of one client after one round, linearly in the local steps E.
What is wrong: noise adds up as √E and not as E; ε/√R for the cost of one round is an asymptotic formula and no bound;
and the bound for one round says nothing about which E is best when E·R is fixed.
What we use: the corrected bound (`theorem2_corrected`), the same sums over all rounds and clients
(`theorem2_whole_run`), and our accountant for ε.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from discreet.part import Count, Multiplier, part
from discreet.planning.theory.divisors import divisors
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import Event, sampled_gaussian

BEST_EPOCHS_NOTE = (
    "Theorem 2 minimises an upper bound that is linear in E by construction, for one client and one round. Summed over "
    "the R rounds of E·R = T it is the same at every E, and so is the noise that training puts into the mean: "
    "nothing in it prefers E = 1"
)
TOTAL_COST_NOTE = "The server sees every round, and all rounds together cost the whole ε"

SERIES_FROM = 10_000  # coordinates from which two terms of the series leave an error below 1e-13


@part
class Training:
    """DP-SGD at each client, with the models averaged after every few epochs.

    An epoch is ⌈examples/batch_size⌉ steps. Each step draws a Poisson batch at a rate of one over that number, as the
    paper's library does; its Algorithm 1 has one batch for an epoch.

    Attributes:
        examples: The examples of one client.
        epochs: The epochs of all rounds together.
        lipschitz: β, an upper bound on the norm of every gradient of the loss.
    """

    examples: Count
    batch_size: Count
    epochs: Count
    clients: Count
    clip_norm: Multiplier
    learning_rate: Multiplier
    dimension: Count
    lipschitz: Multiplier

    @property
    def steps_per_epoch(self) -> int:
        return -(-self.examples // self.batch_size)

    @property
    def sampling_rate(self) -> float:
        return 1 / self.steps_per_epoch

    @property
    def expected_batch(self) -> float:
        """L: the public number that the sum of a batch is divided by."""
        return self.examples / self.steps_per_epoch

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    @property
    def step_length(self) -> float:
        """αC/L: how far one example can move a model in one step."""
        return self.learning_rate * self.clip_norm / self.expected_batch


class Split(NamedTuple):
    """The epochs split into rounds of E each.

    Attributes:
        epochs: E, the local epochs of a round.
        rounds: R.
        local_steps: The steps of one round.
        epsilon: The ε of one round alone, exact.
        asymptotic: The ε of one round by the paper's formula.
        valid: Whether the paper's formula is at least the exact ε.
        reason: Why it is not.
        printed_bound: Theorem 2 as printed.
        corrected_bound: Theorem 2 with noise that adds up as √E.
        client_noise: The expected norm of the noise in one client's update of a round.
        mean_noise: The expected norm of the noise in the mean of all clients' updates.
    """

    epochs: int
    rounds: int
    local_steps: int
    epsilon: float
    asymptotic: float
    valid: bool
    reason: str
    printed_bound: float
    corrected_bound: float
    client_noise: float
    mean_noise: float


def event(training: Training, noise_multiplier: float, epochs: int) -> Event:
    """Return what `epochs` epochs reveal about one example to an observer of its client's models."""
    return sampled_gaussian(noise_multiplier, training.sampling_rate, epochs * training.steps_per_epoch)


def calibrate_noise(training: Training, epsilon: float, delta: float) -> float:
    """Return the least noise multiplier that keeps all epochs within (ε, δ), however they are split into rounds."""
    target = EpsilonTarget(epsilon=epsilon, delta=delta)
    return calibration.calibrate_noise(lambda z: event(training, z, training.epochs), target)


def asymptotic_epsilon(epsilon: float, share: float) -> float:
    """ε_int = ε/√γ with γ = 1/share: the cost of a share of the steps (PFL, Section 4.2).

    It rests on ε ∝ √T, the asymptotic result of Abadi et al. (2016, Theorem 1), and is not a bound: for few steps the
    true ε can be larger.
    """
    return epsilon * math.sqrt(share)


def theorem2_printed(training: Training, noise_multiplier: float, local_steps: int) -> float:
    """Δ(E) ≤ βE·(αC + α_1C_1 + √2·ασC/L · Γ((N+1)/2)/Γ(N/2)), for one client after one round (PFL, Theorem 2).

    E counts steps, and N coordinates. α_1 = α, and C_1 = β, which bounds every gradient (the paper calls it "very
    high"). The noise term is too large: noise adds up as √E, not as E.
    """
    return training.lipschitz * local_steps * (_step_difference(training) + _step_noise(training, noise_multiplier))


def theorem2_corrected(training: Training, noise_multiplier: float, local_steps: int) -> float:
    """Δ(E) ≤ β·(E·(αC + α_1C_1) + √E·√2·ασC/L · Γ((N+1)/2)/Γ(N/2)): Theorem 2, since E‖Σ_t η_t‖ = √E·E‖η_1‖."""
    noise = math.sqrt(local_steps) * _step_noise(training, noise_multiplier)
    return training.lipschitz * (local_steps * _step_difference(training) + noise)


def theorem2_whole_run(training: Training, noise_multiplier: float) -> float:
    """β·(T·(αC + α_1C_1) + √(T/k)·√2·ασC/L · Γ((N+1)/2)/Γ(N/2)): the released mean after all T = E·R steps.

    These are the sums (1) and (2) of Theorem 2's proof, over all rounds and the mean of k clients. They don't depend
    on E.
    """
    noise = expected_noise_norm(training, noise_multiplier, training.steps, training.clients)
    return training.lipschitz * (training.steps * _step_difference(training) + noise)


def expected_noise_norm(training: Training, noise_multiplier: float, steps: int, clients: int = 1) -> float:
    """Return the expected norm of the noise that `steps` steps put into the mean of `clients` models.

    Exact for plain SGD, the only optimiser in the paper's theory: √(steps/clients)·ασC/L·E‖N(0, I)‖.
    """
    return math.sqrt(steps / clients) * _step_noise(training, noise_multiplier)


def split_epochs(training: Training, noise_multiplier: float, epsilon: float, delta: float) -> Iterator[Split]:
    """Yield a row for every E that divides the epochs; `epsilon` is the cost of all epochs together."""
    for epochs in divisors(training.epochs):
        local_steps = epochs * training.steps_per_epoch
        exact = accountant.epsilon(event(training, noise_multiplier, epochs), delta)
        asymptotic = asymptotic_epsilon(epsilon, epochs / training.epochs)
        valid = asymptotic >= exact
        yield Split(
            epochs=epochs,
            rounds=training.epochs // epochs,
            local_steps=local_steps,
            epsilon=exact,
            asymptotic=asymptotic,
            valid=valid,
            reason="" if valid else "asymptotic: less than the true cost of one round",
            printed_bound=theorem2_printed(training, noise_multiplier, local_steps),
            corrected_bound=theorem2_corrected(training, noise_multiplier, local_steps),
            client_noise=expected_noise_norm(training, noise_multiplier, local_steps),
            mean_noise=expected_noise_norm(training, noise_multiplier, local_steps, training.clients),
        )


def expected_normal_norm(dimension: int) -> float:
    """E‖N(0, I)‖ = √2·Γ((N+1)/2)/Γ(N/2), just below √N."""
    if dimension > SERIES_FROM:  # the logarithms of Γ are so large here that their difference loses digits
        return math.sqrt(dimension) * (1 - 1 / (4 * dimension) + 1 / (32 * dimension**2))
    return math.sqrt(2) * math.exp(math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2))


def _step_difference(training: Training) -> float:
    """αC + α_1C_1: how far a private and a plain step on the same batch can differ."""
    return training.learning_rate * (training.clip_norm + training.lipschitz)


def _step_noise(training: Training, noise_multiplier: float) -> float:
    return training.step_length * noise_multiplier * expected_normal_norm(training.dimension)
