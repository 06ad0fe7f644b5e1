"""The papers' algorithms, each as a composition of parts."""

from collections.abc import Callable
from typing import Any

from discreet.algorithms.algorithm import Algorithm
from discreet.mechanisms import Gaussian
from discreet.sampling import AnySampling, Everyone, Poisson
from discreet.server_optimizers import AnyServer, ServerSgd
from discreet.training import DpSgd, LocalSgd


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
    """Federated averaging (McMahan et al. 2017): local SGD, then the mean weighed by examples. No privacy."""
    return Algorithm(
        sampling=sampling,
        trainer=_local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay),
        server=server,
        weighting="by_examples",
    )


def pfl(
    *,
    learning_rate: float,
    clip_norm: float,
    sampling_rate: float,
    local_steps: int = 1,
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """PFL (paper 000): DP-SGD on every client, then the plain mean of their models.

    g = (Σ clip(∇ℓ_i, C) + N(0, σ²C²))/(q·n_k) for each of `local_steps` Poisson batches; w ← mean over clients.
    Protects single examples, against the server and everybody after it.
    """
    return Algorithm(
        trainer=DpSgd(
            steps=local_steps,
            sampling_rate=sampling_rate,
            clip_norm=clip_norm,
            noise_multiplier=noise_multiplier,
            learning_rate=learning_rate,
            momentum=momentum,
            weight_decay=weight_decay,
        ),
        server=server,
    )


def dp_fedavg(
    *,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    epochs: int | None = None,
    steps: int | None = None,
    sampling_rate: float = 1.0,
    sampling: AnySampling | None = None,
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """DP-FedAvg (McMahan et al. 2018): clip each client's update to C, sum, add N(0, σ²C²), divide by qM.

    Protects whole clients, against those who see released models; the server is trusted.
    """
    return Algorithm(
        sampling=sampling or (Everyone() if sampling_rate == 1 else Poisson(rate=sampling_rate)),
        trainer=_local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay),
        mechanism=Gaussian(clip_norm=clip_norm, noise_multiplier=noise_multiplier),
        server=server,
    )


def _local_sgd(
    learning_rate: float, batch_size: int, epochs: int | None, steps: int | None, momentum: float, weight_decay: float
) -> LocalSgd:
    """One epoch, unless epochs or steps are given."""
    return LocalSgd(
        learning_rate=learning_rate,
        batch_size=batch_size,
        epochs=1 if epochs is None and steps is None else epochs,
        steps=steps,
        momentum=momentum,
        weight_decay=weight_decay,
    )


RECIPES: dict[str, Callable[..., Any]] = {"fedavg": fedavg, "pfl": pfl, "dp_fedavg": dp_fedavg}
