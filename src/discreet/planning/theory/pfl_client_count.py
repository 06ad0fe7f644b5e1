"""PFL (Bhaskar et al. 2025): what more clients bring; its Theorem 3, and the noise in the mean of many models.

What is proved: Theorem 3 bounds the probability that the mean of k models is close to the best one, by Chebyshev's
inequality. What is wrong: its σ² is the variance of one coordinate, as if a model had one parameter, and the mean of
the models is taken to be the best model. What we use: the variance of all coordinates and an explicit bias
(`theorem3_corrected`).
"""

import math
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, Moderate, Multiplier, NonNegative, part
from discreet.planning.theory import heikkila_noise_shares, pfl_local_epochs
from discreet.planning.theory.pfl_local_epochs import Training

UNBIASED_NOTE = (
    "Theorem 3 takes clients' models as independent draws whose mean is the best model. Clipping moves that mean, and "
    "so do clients whose data differ, which no number of clients averages out"
)


@part
class ModelSpread:
    """How clients' models are distributed around the best model.

    Attributes:
        deviation: The standard deviation in each of `dimension` coordinates.
        lipschitz: β, an upper bound on the norm of every gradient of the loss.
        loss: l: utility is the probability that the excess loss of the mean model is below this.
        bias: The norm of the difference between the mean of the models and the best model.
    """

    deviation: NonNegative
    dimension: Count
    lipschitz: Multiplier
    loss: Multiplier
    bias: Moderate = 0.0


def theorem3_printed(spread: ModelSpread, clients: int) -> float:
    """U_l ≥ 1 − σ²β²/(l²k) (PFL, proof of Theorem 3; the theorem itself has 1 − O(1/(l²k))).

    σ² is the variance of one coordinate, as if a model had one. Below 0 the bound says nothing.
    """
    return 1 - (spread.lipschitz / spread.loss) ** 2 * spread.deviation * spread.deviation / clients


def theorem3_corrected(spread: ModelSpread, clients: int) -> float:
    """U_l ≥ 1 − β²·(Nσ²/k + b²)/l²: Chebyshev's inequality for E‖θ − θ*‖² in N coordinates, with a bias of norm b."""
    noise, bias = spread.deviation * spread.deviation, spread.bias * spread.bias
    return 1 - (spread.lipschitz / spread.loss) ** 2 * (spread.dimension * noise / clients + bias)


class ClientCount(NamedTuple):
    """What a number of clients comes to; noise of the mean is in units of the clip norm.

    Attributes:
        noise_multiplier: The noise of one client.
        local_noise: The noise of the mean where each client adds enough by itself.
        shared_noise: The noise of the mean where only the sum has enough, and only the sum is seen.
        printed_utility: Theorem 3 as printed.
        corrected_utility: Theorem 3 with all coordinates and a bias.
        valid: Whether the corrected utility says anything.
        reason: Why it doesn't.
    """

    clients: int
    examples: int
    noise_multiplier: float
    local_noise: float
    shared_noise: float
    printed_utility: float
    corrected_utility: float
    valid: bool
    reason: str


def evaluate_client_count(
    training: Training, epsilon: float, delta: float, loss: float, bias: float = 0.0
) -> ClientCount:
    """Evaluate `training.clients` clients after a round of one epoch each, every one of them within (ε, δ).

    The mean of sums with noise zC each has zC/√k in each coordinate, as in PFL. With shares zC/√k of one noise for all
    (Heikkilä 2025) it has zC/k, against observers who see only sums. The spread of the models is taken to be the noise
    alone.
    """
    noise, clients = pfl_local_epochs.calibrate_noise(training, epsilon, delta), training.clients
    spread = ModelSpread(
        deviation=training.step_length * noise * math.sqrt(training.steps_per_epoch),
        dimension=training.dimension,
        lipschitz=training.lipschitz,
        loss=loss,
        bias=bias,
    )
    corrected = theorem3_corrected(spread, clients)
    share = heikkila_noise_shares.noise_share(noise, clients)
    return ClientCount(
        clients=clients,
        examples=training.examples,
        noise_multiplier=noise,
        local_noise=heikkila_noise_shares.sum_noise(noise, clients) / clients,
        shared_noise=heikkila_noise_shares.sum_noise(share, clients) / clients,
        printed_utility=theorem3_printed(spread, clients),
        corrected_utility=corrected,
        valid=corrected > 0,
        reason="" if corrected > 0 else "a probability of at least 0 or less: says nothing",
    )


def examples_per_client(pool: int, clients: int) -> int:
    """Return the examples of each client when `clients` clients share a pool of examples."""
    if clients > pool:
        raise InvalidInput(f"{pool} examples can't be shared by {clients} clients.", fix="Ask for fewer clients.")
    return pool // clients
