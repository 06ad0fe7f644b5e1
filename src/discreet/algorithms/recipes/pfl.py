"""PFL (Bhaskar et al. 2025): DP-SGD on every client, then the mean of their models."""

from collections.abc import Sequence
from typing import Any, Literal

from discreet.algorithms.aggregation import AnyAggregation, Plain
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import DpSgd
from discreet.algorithms.training.per_round import as_tuple
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.errors import InvalidInput


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
    schedule: AnySchedule = Constant(),
    aggregation: AnyAggregation = Plain(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """PFL (Bhaskar et al. 2025): DP-SGD on every client, then the plain mean of their models.

    Each Poisson batch of a round gives g = (Σ clip(∇ℓ_i, C) + N(0, σ²C²))/(q·n_k); then w ← mean over clients.
    A round has E_r local epochs; the noise is computed from their total T = ΣE_r.

    Certified: single examples, against the server and everyone who sees less than the server.

    Args:
        learning_rate: Learning rate of the local steps.
        clip_norm: C, the norm that every example's gradient is clipped to. A list has one value for each client.
        sampling_rate: q, the probability that an example is in a batch. A list has one value for each client.
        batch_size: Expected batch size of the largest client, instead of sampling_rate.
        local_steps: Noisy steps in a round. A list has one value for each round; its last value stays in force.
        epochs: E_r, instead of local_steps. A list has one value for each round; its last value stays in force.
        epoch: What one of `epochs` is: a pass over the data, as in the paper's experiments, or a single minibatch,
            as in its Algorithm 1.
        noise_multiplier: σ. None computes it from the promise. A list has one value for each client.
        momentum: Momentum of the local steps; it starts at zero in every round.
        weight_decay: Weight decay of the local steps.
        schedule: How the learning rate changes from round to round.
        aggregation: How the server takes the mean of the updates: as it is, or by "median" or "trimmed_mean".
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm whose clients add enough noise themselves.

    Raises:
        InvalidInput: If `epoch` is unknown or has no `epochs`, if both or neither of sampling_rate and batch_size are
            given, if both local_steps and epochs are, or if a number is out of range.

    Example:
        >>> pfl(learning_rate=0.3, clip_norm=1.0, batch_size=64, epochs=[1, 2]).trainer.epochs
        (1, 2)
    """
    if epoch not in ("pass", "minibatch") or (epoch == "minibatch" and epochs is None):
        raise InvalidInput(
            f'epoch must be "pass" or "minibatch", says what one of `epochs` is, and got {epoch!r} with epochs '
            f"{epochs!r}.",
            fix="Give epochs with it, or local_steps alone.",
        )
    if epoch == "minibatch" and local_steps is None:
        local_steps, epochs = epochs, None
    per_client: dict[str, Any] = {
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
            **per_client,
        ),
        aggregation=aggregation,
        server=server,
    )
