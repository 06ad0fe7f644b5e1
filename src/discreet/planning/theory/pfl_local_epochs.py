"""How a budget of epochs is cut into rounds: what paper 000 proves of it, and how far its proof carries."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from discreet.part import Count, Multiplier, part
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import Event, sampled_gaussian

BEST_EPOCHS_NOTE = (
    "Theorem 2 minimises an upper bound that is linear in E by construction, for one client and one round. Added up "
    "over the R rounds of E·R = T it is the same at every E, and so is the noise that training puts into the mean: "
    "nothing in it prefers E = 1"
)
TOTAL_COST_NOTE = "The server sees every round, and all of them together cost the whole ε"

SERIES_FROM = 10_000  # from there on two terms leave an error below 1e-13


@part
class Training:
    """DP-SGD at each of `clients` clients, `epochs` in all, and the mean of their models after every few (PFL).

    An epoch is ⌈examples/batch_size⌉ steps, each a Poisson batch at the rate of one over that: as the paper's library
    draws them, while its Algorithm 1 has one batch for an epoch. `lipschitz` is β: no gradient of the loss is longer.
    """

    examples: Count  # of one client
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
        """L: what the sum of a batch is divided by, a public number."""
        return self.examples / self.steps_per_epoch

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    @property
    def step(self) -> float:
        """αC/L: how far one example moves a model in one step."""
        return self.learning_rate * self.clip_norm / self.expected_batch


class Split(NamedTuple):
    """The epochs cut into rounds of E each: what one round costs, and Theorem 2's bounds for it."""

    epochs: int  # E
    rounds: int  # R
    local_steps: int  # of a round
    epsilon: float  # of one round alone: exact
    asymptotic: float  # the same as the paper has it
    valid: bool  # whether that is no smaller than what is true
    reason: str
    printed: float  # Theorem 2
    corrected: float
    client_noise: float  # expected norm of the noise in one client's update of a round
    mean_noise: float  # in the mean of all clients'


def event(training: Training, noise_multiplier: float, epochs: int) -> Event:
    """What so many epochs release of one example to whoever sees its client's models."""
    return sampled_gaussian(noise_multiplier, training.sampling_rate, epochs * training.steps_per_epoch)


def calibrate_noise(training: Training, epsilon: float, delta: float) -> float:
    """The least noise multiplier that keeps all epochs within (ε, δ). How they are cut into rounds changes nothing."""
    target = EpsilonTarget(epsilon=epsilon, delta=delta)
    return calibration.calibrate_noise(lambda z: event(training, z, training.epochs), target)


def asymptotic_epsilon(epsilon: float, share: float) -> float:
    """ε_int = ε/√γ with γ = 1/share: what a share of the steps costs (paper 000, Section 4.2).

    It rests on ε ∝ √T, the asymptotic of Abadi et al. (2016, Theorem 1), and is no bound: for few steps the true ε
    can be larger.
    """
    return epsilon * math.sqrt(share)


def theorem2_printed(training: Training, noise_multiplier: float, local_steps: int) -> float:
    """Δ(E) ≤ βE·(αC + α_1C_1 + √2·ασC/L · Γ((N+1)/2)/Γ(N/2)), of one client after one round (paper 000, Theorem 2).

    E counts steps, N coordinates; α_1 = α, and C_1 = β, which bounds every gradient (to the paper it is "very high").
    The noise's part is too large: noises add up as √E, not as E.
    """
    return training.lipschitz * local_steps * (_gradients(training) + _one_noise(training, noise_multiplier))


def theorem2_corrected(training: Training, noise_multiplier: float, local_steps: int) -> float:
    """Δ(E) ≤ β·(E·(αC + α_1C_1) + √E·√2·ασC/L · Γ((N+1)/2)/Γ(N/2)): Theorem 2, since E‖Σ_t η_t‖ = √E·E‖η_1‖."""
    noise = math.sqrt(local_steps) * _one_noise(training, noise_multiplier)
    return training.lipschitz * (local_steps * _gradients(training) + noise)


def theorem2_whole_run(training: Training, noise_multiplier: float) -> float:
    """β·(T·(αC + α_1C_1) + √(T/k)·√2·ασC/L · Γ((N+1)/2)/Γ(N/2)): the released mean after all T = E·R steps.

    The sums of Theorem 2's proof, (1) and (2), taken over all rounds and the mean of k clients. E is not in it.
    """
    carried = expected_noise_norm(training, noise_multiplier, training.steps, training.clients)
    return training.lipschitz * (training.steps * _gradients(training) + carried)


def expected_noise_norm(training: Training, noise_multiplier: float, steps: int, clients: int = 1) -> float:
    """The expected norm of the noise that so many steps put into the mean of so many clients' models.

    Exact for plain SGD, the only one in the paper's theory, as √(steps/clients)·ασC/L·E‖N(0, I)‖.
    """
    return math.sqrt(steps / clients) * _one_noise(training, noise_multiplier)


def split_epochs(training: Training, noise_multiplier: float, epsilon: float, delta: float) -> Iterator[Split]:
    """A row for every E that divides the epochs; `epsilon` is what all of them cost."""
    for epochs in _divisors(training.epochs):
        local_steps = epochs * training.steps_per_epoch
        exact = accountant.epsilon(event(training, noise_multiplier, epochs), delta)
        papers = asymptotic_epsilon(epsilon, epochs / training.epochs)
        valid = papers >= exact
        yield Split(
            epochs=epochs,
            rounds=training.epochs // epochs,
            local_steps=local_steps,
            epsilon=exact,
            asymptotic=papers,
            valid=valid,
            reason="" if valid else "asymptotic: less than one round really costs",
            printed=theorem2_printed(training, noise_multiplier, local_steps),
            corrected=theorem2_corrected(training, noise_multiplier, local_steps),
            client_noise=expected_noise_norm(training, noise_multiplier, local_steps),
            mean_noise=expected_noise_norm(training, noise_multiplier, local_steps, training.clients),
        )


def expected_normal_norm(dimension: int) -> float:
    """E‖N(0, I)‖ = √2·Γ((N+1)/2)/Γ(N/2), just below √N."""
    if dimension > SERIES_FROM:  # where the logarithms of Γ are so large that their difference loses digits
        return math.sqrt(dimension) * (1 - 1 / (4 * dimension) + 1 / (32 * dimension**2))
    return math.sqrt(2) * math.exp(math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2))


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def _gradients(training: Training) -> float:
    """αC + α_1C_1: how far a private and a plain step may part in one batch."""
    return training.learning_rate * (training.clip_norm + training.lipschitz)


def _one_noise(training: Training, noise_multiplier: float) -> float:
    return training.step * noise_multiplier * expected_normal_norm(training.dimension)
