"""The papers' algorithms, each as a composition of parts."""

from collections.abc import Sequence
from typing import Any, Literal

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg, ddp_fedavg_client
from discreet.algorithms.recipes.dp_fedsam import (
    dp_fedavg,
    dp_fedavg_blur,
    dp_fedavg_blurs,
    dp_fedsam,
    dp_fedsam_top,
    fed_smp_rand,
    fed_smp_top,
)
from discreet.algorithms.recipes.fl_sgd_gaussian import fl_sgd_gaussian
from discreet.algorithms.recipes.ldp_fedavg import ldp_fedavg
from discreet.algorithms.recipes.local_schemes import convex_local, denoised_release, proximal_local, shards
from discreet.algorithms.recipes.local_training import local_sgd
from discreet.algorithms.recipes.recipe import Recipe
from discreet.algorithms.sampling import AnySampling, Everyone
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import DpSgd, GradientDescent
from discreet.algorithms.training.gradient_rules import Prox
from discreet.algorithms.training.per_round import as_tuple
from discreet.algorithms.training.schedules import Constant, Schedule
from discreet.errors import InvalidInput


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
        trainer=local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay=weight_decay),
        server=server,
        weighting="by_examples",
    )


def pfl(
    *,
    learning_rate: float,
    clip_norm: float | Sequence[float],
    sampling_rate: float | Sequence[float] | None = None,
    batch_size: int | None = None,
    local_steps: int | Sequence[int] | None = None,
    epochs: int | Sequence[int] | None = None,
    epoch: Literal["pass", "minibatch"] = "pass",
    noise_multiplier: float | Sequence[float] | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    schedule: Schedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """PFL (paper 000): DP-SGD on every client, then the plain mean of their models.

    g = (Σ clip(∇ℓ_i, C) + N(0, σ²C²))/(q·n_k) for each of a round's Poisson batches; w ← mean over clients.
    A round is E_r local `epochs` (a list names one for each round): passes over the data, as its experiments have
    it, or single minibatches, as its Algorithm 1 reads. Protects single examples, against the server and everybody
    after it; the noise is computed from T = ΣE_r. Rate, clip, noise and privacy.epsilon may be lists of one for each
    client.
    """
    if epoch not in ("pass", "minibatch") or (epoch == "minibatch" and epochs is None):
        raise InvalidInput(
            f'epoch must be "pass" or "minibatch", says what one of `epochs` is, and got {epoch!r} with epochs '
            f"{epochs!r}.",
            fix="Give epochs with it, or local_steps alone.",
        )
    if epoch == "minibatch" and local_steps is None:
        local_steps, epochs = epochs, None
    own: dict[str, Any] = {
        "sampling_rate": sampling_rate,
        "clip_norm": clip_norm,
        "noise_multiplier": noise_multiplier,
    }
    return Algorithm(
        trainer=DpSgd(
            steps=as_tuple(1 if local_steps is None and epochs is None else local_steps),
            epochs=as_tuple(epochs),
            batch_size=batch_size,
            learning_rate=learning_rate,
            momentum=momentum,
            weight_decay=weight_decay,
            schedule=schedule,
            **own,
        ),
        server=server,
    )


def fedsgd(*, learning_rate: float, server: AnyServer = ServerSgd()) -> Algorithm:
    """Federated SGD (McMahan et al. 2017): one full-batch gradient step of every client, averaged by examples.

    No privacy.
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
    """FedProx (Li et al. 2020): FedAvg whose local loss gains (μ/2)·‖w−wᵗ‖², μ = `strength`. No privacy."""
    return Algorithm(
        sampling=sampling,
        trainer=local_sgd(learning_rate, batch_size, epochs, steps, momentum, regulariser=Prox(strength=strength)),
        server=server,
        weighting="by_examples",
    )


_LOCAL = {"learning_rate": 0.1, "batch_size": 32, "epochs": 1}
_CONVEX = {"learning_rate": 2.0, "clip_norm": 0.5, "feature_bound": 3.0, "batch_size": 4}
_CENTRAL = _LOCAL | {"clip_norm": 0.5, "sampling_rate": 0.1}

RECIPES = {  # by the name that a file gives; the example is what `discreet algorithms` shows, and what a test runs
    "fedavg": Recipe(fedavg, example=_LOCAL),
    "fedsgd": Recipe(fedsgd, example={"learning_rate": 0.5}),
    "fedprox": Recipe(fedprox, example=_LOCAL | {"strength": 0.1}),
    "pfl": Recipe(pfl, "000", {"learning_rate": 0.3, "clip_norm": 1.0, "batch_size": 64, "epochs": 1}),
    "fl_sgd_gaussian": Recipe(fl_sgd_gaussian, "001", {"learning_rate": 0.5, "sampling_rate": 0.1, "clip_norm": 1.0}),
    "ddp_fedavg": Recipe(
        ddp_fedavg, "002", {"learning_rate": 0.5, "sampling_rate": 0.1, "clip_norm": 1.0, "local_steps": 2}
    ),
    "convex_local": Recipe(convex_local, example=_CONVEX),
    "proximal_local": Recipe(proximal_local, example=_CONVEX | {"passes": 2, "strength": 0.1}),
    "denoised_release": Recipe(
        denoised_release,
        example={"learning_rate": 0.5, "sampling_rate": 0.1, "clip_norm": 1.0, "local_steps": 2},
    ),
    "shards": Recipe(shards, example=_LOCAL | {"shards": 2, "clip_norm": 0.5}),
    "ddp_fedavg_client": Recipe(ddp_fedavg_client, "002", _LOCAL | {"clip_norm": 0.5}),
    "ldp_fedavg": Recipe(
        ldp_fedavg, "003", {"learning_rate": 0.1, "gradient_bound": 1.0, "local_iterations": 5, "cohort": 2}
    ),
    "dp_fedavg": Recipe(dp_fedavg, "004", _CENTRAL),
    "dp_fedavg_blur": Recipe(dp_fedavg_blur, "004", _CENTRAL | {"strength": 0.1}),
    "dp_fedavg_blurs": Recipe(dp_fedavg_blurs, "004", _CENTRAL | {"strength": 0.1, "fraction": 0.4}),
    "fed_smp_rand": Recipe(fed_smp_rand, "004", _CENTRAL | {"fraction": 0.4}),
    "fed_smp_top": Recipe(fed_smp_top, "004", _CENTRAL | {"fraction": 0.4}),
    "dp_fedsam": Recipe(dp_fedsam, "004", _CENTRAL | {"rho": 0.5}),
    "dp_fedsam_top": Recipe(dp_fedsam_top, "004", _CENTRAL | {"rho": 0.5, "fraction": 0.4}),
}
