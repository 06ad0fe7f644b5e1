"""Paper 001: federated SGD in which every client adds Gaussian noise of its own to one gradient a round."""

from typing import Literal

from discreet.algorithms.algorithm import Algorithm
from discreet.errors import InvalidInput
from discreet.server_optimizers import AnyServer, ServerSgd
from discreet.training import AnyTrainer, DpSgd, MinibatchDp
from discreet.training.schedules import Constant, Schedule


def fl_sgd_gaussian(
    *,
    learning_rate: float,
    sampling_rate: float,
    clip_norm: float,
    clipping: Literal["example", "minibatch"] = "example",
    noise_multiplier: float | None = None,
    schedule: Schedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """Federated SGD with Gaussian noise (paper 001): one noisy gradient of every client a round.

    Each client draws its examples at rate q. clipping = "example": (Σ clip(∇ℓ_i, C) + N(0, C²σ²))/(q·n_k), sensitivity
    C. clipping = "minibatch", as the paper has it: clip(mean gradient, C) + N(0, C²σ²), sensitivity 2C: counted as
    σ/2, where the paper counts σ. Protects single examples, against the server and everybody after it.
    """
    if clipping not in ("example", "minibatch"):
        raise InvalidInput(f'clipping must be "example" or "minibatch", and got {clipping!r}.')
    trainer: AnyTrainer
    if clipping == "example":
        trainer = DpSgd(
            steps=(1,),
            sampling_rate=sampling_rate,
            clip_norm=clip_norm,
            noise_multiplier=noise_multiplier,
            learning_rate=learning_rate,
            schedule=schedule,
        )
    else:
        trainer = MinibatchDp(
            sampling_rate=sampling_rate,
            clip_norm=clip_norm,
            noise_multiplier=noise_multiplier,
            learning_rate=learning_rate,
            schedule=schedule,
        )
    return Algorithm(trainer=trainer, server=server)
