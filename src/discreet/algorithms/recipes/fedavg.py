"""Baselines without privacy: federated averaging, federated SGD and FedProx."""

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.local_training import local_sgd
from discreet.algorithms.sampling import AnySampling, Everyone
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import GradientDescent
from discreet.algorithms.training.gradient_rules import Prox


def fedavg(
    *,
    learning_rate: float,
    batch_size: int,
    epochs: int | None = None,
    steps: int | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    sampling: AnySampling = Everyone(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """Federated averaging (McMahan et al. 2017): local SGD, then the mean weighted by examples. No privacy.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        epochs: Passes over a client's data in a round. One if neither epochs nor steps is given.
        steps: Local steps in a round, instead of epochs.
        momentum: Momentum of the local steps; it starts at zero in every round.
        weight_decay: Weight decay of the local steps.
        sampling: Which clients join a round.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm that protects nobody: nothing is certified or claimed.

    Raises:
        InvalidInput: If both epochs and steps are given, or a number is out of range.

    Example:
        >>> fedavg(learning_rate=0.1, batch_size=32, epochs=2).weighting
        'by_examples'
    """
    return Algorithm(
        sampling=sampling,
        trainer=local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay=weight_decay),
        server=server,
        weighting="by_examples",
    )


def fedsgd(*, learning_rate: float, server: AnyServer = ServerSgd()) -> Algorithm:
    """Federated SGD (McMahan et al. 2017): one full-batch gradient step of every client, averaged by examples.

    No privacy.

    Args:
        learning_rate: Learning rate of the step.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm that protects nobody: nothing is certified or claimed.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> fedsgd(learning_rate=0.5).trainer.iterations
        (1,)
    """
    trainer = GradientDescent(learning_rate=learning_rate, iterations=(1,))
    return Algorithm(trainer=trainer, server=server, weighting="by_examples")


def fedprox(
    *,
    learning_rate: float,
    batch_size: int,
    strength: float,
    epochs: int | None = None,
    steps: int | None = None,
    momentum: float = 0.0,
    sampling: AnySampling = Everyone(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """FedProx (Li et al. 2020): FedAvg whose local loss gains (μ/2)·‖w−wᵗ‖², μ = `strength`. No privacy.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        strength: μ, the pull towards the broadcast model wᵗ.
        epochs: Passes over a client's data in a round. One if neither epochs nor steps is given.
        steps: Local steps in a round, instead of epochs.
        momentum: Momentum of the local steps; it starts at zero in every round.
        sampling: Which clients join a round.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm that protects nobody: nothing is certified or claimed.

    Raises:
        InvalidInput: If both epochs and steps are given, or a number is out of range.

    Example:
        >>> fedprox(learning_rate=0.1, batch_size=32, strength=0.1).trainer.regulariser.kind
        'prox'
    """
    return Algorithm(
        sampling=sampling,
        trainer=local_sgd(learning_rate, batch_size, epochs, steps, momentum, regulariser=Prox(strength=strength)),
        server=server,
        weighting="by_examples",
    )
