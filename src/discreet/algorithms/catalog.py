"""The papers' algorithms, each as a composition of parts."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from discreet.algorithms.algorithm import Algorithm
from discreet.mechanisms import Gaussian
from discreet.sampling import AnySampling, Everyone, Poisson
from discreet.server_optimizers import AnyServer, ServerSgd
from discreet.training import DpSgd, LocalSgd
from discreet.training.per_round import listed
from discreet.training.schedules import Constant, Schedule


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
    sampling_rate: float | None = None,
    batch_size: int | None = None,
    local_steps: int | Sequence[int] | None = None,
    epochs: int | Sequence[int] | None = None,
    epoch: Literal["pass", "minibatch"] = "pass",
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    schedule: Schedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """PFL (paper 000): DP-SGD on every client, then the plain mean of their models.

    g = (Σ clip(∇ℓ_i, C) + N(0, σ²C²))/(q·n_k) for each of a round's Poisson batches; w ← mean over clients.
    A round is E_r local `epochs` (a list names one for each round): passes over the data, as its experiments have
    it, or single minibatches, as its Algorithm 1 reads. Protects single examples, against the server and everybody
    after it; the noise is computed from T = ΣE_r.
    """
    if epoch == "minibatch" and epochs is not None and local_steps is None:
        local_steps, epochs = epochs, None
    return Algorithm(
        trainer=DpSgd(
            steps=listed(1 if local_steps is None and epochs is None else local_steps),
            epochs=listed(epochs),
            sampling_rate=sampling_rate,
            batch_size=batch_size,
            clip_norm=clip_norm,
            noise_multiplier=noise_multiplier,
            learning_rate=learning_rate,
            momentum=momentum,
            weight_decay=weight_decay,
            schedule=schedule,
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
