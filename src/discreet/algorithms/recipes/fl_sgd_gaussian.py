"""Paper 001: federated SGD in which every client adds Gaussian noise of its own to one gradient a round."""

from collections.abc import Sequence
from typing import Any, Literal

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import AnyTrainer, DpSgd, MinibatchDp
from discreet.algorithms.training.schedules import Constant, Schedule
from discreet.errors import InvalidInput


def fl_sgd_gaussian(
    *,
    learning_rate: float,
    sampling_rate: float | Sequence[float],
    clip_norm: float | Sequence[float],
    clipping: Literal["example", "minibatch"] = "example",
    noise_multiplier: float | Sequence[float] | None = None,
    schedule: Schedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """Federated SGD with Gaussian noise (paper 001): one noisy gradient of every client a round.

    Client k draws its examples at rate q_k. clipping = "example": (Σ clip(∇ℓ_i, C_k) + N(0, C_k²σ_k²))/(q_k·n_k),
    sensitivity C_k. clipping = "minibatch", as the paper has it: clip(mean gradient, C_k) + N(0, C_k²σ_k²),
    sensitivity 2C_k: counted as σ_k/2, where the paper counts σ_k. w ← w − η·Σ_k (q_k·n_k/Σ_j q_j·n_j)·g_k: the paper
    weighs by batches as they were drawn, which are not public; these are expected ones. Rates, clips, noise and
    privacy.epsilon may be lists of one for each client; a client whose budget is spent leaves, and the others go on.
    Protects single examples, against the server and everybody after it.
    """
    if clipping not in ("example", "minibatch"):
        raise InvalidInput(f'clipping must be "example" or "minibatch", and got {clipping!r}.')
    own: dict[str, Any] = {
        "sampling_rate": sampling_rate,
        "clip_norm": clip_norm,
        "noise_multiplier": noise_multiplier,
    }
    trainer: AnyTrainer
    if clipping == "example":
        trainer = DpSgd(steps=(1,), learning_rate=learning_rate, schedule=schedule, **own)
    else:
        trainer = MinibatchDp(learning_rate=learning_rate, schedule=schedule, **own)
    return Algorithm(trainer=trainer, server=server, weighting="by_examples")
