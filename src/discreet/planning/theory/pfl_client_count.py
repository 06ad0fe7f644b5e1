"""What more clients bring: paper 000's Theorem 3, and the noise of a mean of many."""

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
    """How clients' models lie about the best one: `deviation` in each of `dimension` coordinates, and `bias` in norm.

    Utility is asked at a `loss` l: that the model's exceeds the best one's by less.
    """

    deviation: NonNegative
    dimension: Count
    lipschitz: Multiplier
    loss: Multiplier
    bias: Moderate = 0.0


def theorem3_printed(spread: ModelSpread, clients: int) -> float:
    """U_l ≥ 1 − σ²β²/(l²k) (paper 000, proof of Theorem 3; the theorem itself has 1 − O(1/(l²k))).

    σ² is one coordinate's variance there, as if a model had one. It can be below 0, where it says nothing.
    """
    return 1 - (spread.lipschitz / spread.loss) ** 2 * spread.deviation * spread.deviation / clients


def theorem3_corrected(spread: ModelSpread, clients: int) -> float:
    """U_l ≥ 1 − β²·(Nσ²/k + b²)/l²: Chebyshev's inequality for E‖θ − θ*‖² in N coordinates, with a bias of norm b."""
    noise, bias = spread.deviation * spread.deviation, spread.bias * spread.bias
    return 1 - (spread.lipschitz / spread.loss) ** 2 * (spread.dimension * noise / clients + bias)


class ClientCount(NamedTuple):
    """So many clients with so many examples each: their noise, that of the mean in clips, and Theorem 3's utility."""

    clients: int
    examples: int
    noise_multiplier: float
    local: float  # each client has noise enough by itself
    distributed: float  # only the sum has, and only the sum is seen
    printed: float
    corrected: float
    valid: bool  # whether the corrected utility says anything
    reason: str


def evaluate_client_count(
    training: Training, epsilon: float, delta: float, loss: float, bias: float = 0.0
) -> ClientCount:
    """What `training.clients` clients come to, after a round of one epoch each; every one within (ε, δ).

    The mean of sums with noise zC each has zC/√k in each coordinate, as in PFL; with shares zC/√k of one noise for all
    (paper 002) it has zC/k, against those who see only sums. The models' spread is taken to be the noise alone.
    """
    found, clients = pfl_local_epochs.calibrate_noise(training, epsilon, delta), training.clients
    spread = ModelSpread(
        deviation=training.step * found * math.sqrt(training.steps_per_epoch),
        dimension=training.dimension,
        lipschitz=training.lipschitz,
        loss=loss,
        bias=bias,
    )
    true = theorem3_corrected(spread, clients)
    return ClientCount(
        clients=clients,
        examples=training.examples,
        noise_multiplier=found,
        local=heikkila_noise_shares.sum_noise(found, clients) / clients,
        distributed=heikkila_noise_shares.sum_noise(heikkila_noise_shares.noise_share(found, clients), clients)
        / clients,
        printed=theorem3_printed(spread, clients),
        corrected=true,
        valid=true > 0,
        reason="" if true > 0 else "a chance of at least 0 or less: says nothing",
    )


def examples_per_client(pool: int, clients: int) -> int:
    """How many examples each client has when all of them share so many."""
    if clients > pool:
        raise InvalidInput(f"{pool} examples can't be shared out to {clients} clients.", fix="Ask for fewer clients.")
    return pool // clients
