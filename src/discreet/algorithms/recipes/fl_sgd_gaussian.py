"""Kim, Günlü & Schaefer 2021: federated SGD in which each client adds Gaussian noise to one gradient a round."""

from collections.abc import Sequence
from typing import Any, Literal

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import AnyTrainer, DpSgd, MinibatchDp
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.errors import InvalidInput


def fl_sgd_gaussian(
    *,
    learning_rate: float,
    sampling_rate: float | Sequence[float],
    clip_norm: float | Sequence[float],
    clipping: Literal["example", "minibatch"] = "example",
    noise_multiplier: float | Sequence[float] | None = None,
    schedule: AnySchedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """Federated SGD with Gaussian noise (Kim, Günlü & Schaefer 2021): one noisy gradient of every client a round.

    Client k draws its examples at rate q_k. clipping = "example": (Σ clip(∇ℓ_i, C_k) + N(0, C_k²σ_k²))/(q_k·n_k), of
    sensitivity C_k. clipping = "minibatch", as in the paper: clip(mean gradient, C_k) + N(0, C_k²σ_k²), of sensitivity
    2C_k; it is certified as σ_k/2, and the paper counts σ_k.

    w ← w − η·Σ_k (q_k·n_k/Σ_j q_j·n_j)·g_k. The paper weighs clients by the batches that they drew, which are not
    public; here the expected batches are used. privacy.epsilon may be a list of one value for each client: a client
    whose budget is spent leaves, and the others continue.

    Certified: single examples, against the server and everyone who sees less than the server.

    Args:
        learning_rate: η, the learning rate.
        sampling_rate: q_k, the probability that an example is drawn. A list has one value for each client.
        clip_norm: C_k. A list has one value for each client.
        clipping: What is clipped: every example's gradient, or the mean gradient of the batch.
        noise_multiplier: σ_k. None computes it from the promise. A list has one value for each client.
        schedule: How the learning rate changes from round to round.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm whose clients add enough noise themselves.

    Raises:
        InvalidInput: If `clipping` is unknown, or a number is out of range.

    Example:
        >>> fl_sgd_gaussian(learning_rate=0.5, sampling_rate=0.1, clip_norm=1.0).trainer.kind
        'dp_sgd'
    """
    if clipping not in ("example", "minibatch"):
        raise InvalidInput(f'clipping must be "example" or "minibatch", and got {clipping!r}.')
    per_client: dict[str, Any] = {
        "sampling_rate": sampling_rate,
        "clip_norm": clip_norm,
        "noise_multiplier": noise_multiplier,
    }
    trainer: AnyTrainer
    if clipping == "example":
        trainer = DpSgd(steps=(1,), learning_rate=learning_rate, schedule=schedule, **per_client)
    else:
        trainer = MinibatchDp(learning_rate=learning_rate, schedule=schedule, **per_client)
    return Algorithm(trainer=trainer, server=server, weighting="by_examples")
