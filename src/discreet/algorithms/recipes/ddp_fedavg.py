"""Paper 002: federated learning whose noise is shared out over the clients, so that only the sum has enough."""

from collections.abc import Sequence
from typing import Any, Literal

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.local_training import local_sgd
from discreet.algorithms.recipes.shared_noise import ShareNoise, distributed_noise
from discreet.algorithms.sampling import AnySampling, Everyone
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import BroadcastGradients, DpSgd
from discreet.algorithms.training.per_round import as_tuple
from discreet.algorithms.training.schedules import Constant, Schedule
from discreet.errors import InvalidInput


def ddp_fedavg(
    *,
    learning_rate: float,
    clip_norm: float,
    sampling_rate: float | None = None,
    batch_size: int | None = None,
    local_steps: int | Sequence[int] | None = None,
    epochs: int | Sequence[int] | None = None,
    gradients: Literal["broadcast", "local"] = "broadcast",
    noise_multiplier: float | None = None,
    noise: ShareNoise = "skellam",
    bits: int | None = None,
    rotated: bool = False,
    colluding: int = 0,
    dropouts: int = 0,
    schedule: Schedule = Constant(),
    server: AnyServer = ServerSgd(),
    as_published: bool = False,
) -> Algorithm:
    """Distributed DP with local steps (paper 002): S noisy steps of every client, then the mean of their models.

    Each step sums clip(∇ℓ_i, C) over a Poisson batch and adds a share of the noise of all N clients, σ²C²/N.
    noise = "skellam" or "discrete_gaussian": integers of so many `bits` (as many as it takes, unless told), through a
    secure sum, with noise enough when `colluding` clients pool with the server and `dropouts` stay away. "gaussian":
    real numbers, whose sum is trusted.

    gradients = "broadcast": all S are taken at the broadcast model, and against those who see only sums every step
    counts at the whole σ, as the paper counts it. gradients = "local": at the client's own state, as the paper has it,
    which carries only its own noise; so with S > 1 only that is certified, noise_multiplier is one client's, and with
    as_published Theorem 4.6's number is printed as a claim.

    Protects single examples: against the server of a secure sum and everybody after it; where the sum is trusted,
    against the public, and by one share against a server who sees uploads.
    """
    if gradients not in ("broadcast", "local"):
        raise InvalidInput(f'gradients must be "broadcast" or "local", and got {gradients!r}.')
    if as_published and gradients == "broadcast":
        raise InvalidInput(
            'as_published goes with gradients = "local": at the broadcast model the paper\'s count is true.',
            fix="Leave as_published out.",
        )
    common: dict[str, Any] = {
        "steps": as_tuple(1 if local_steps is None and epochs is None else local_steps),
        "epochs": as_tuple(epochs),
        "sampling_rate": sampling_rate,
        "batch_size": batch_size,
        "clip_norm": clip_norm,
        "learning_rate": learning_rate,
        "schedule": schedule,
    }
    if gradients == "local":
        if noise == "discrete_gaussian" or (bits, rotated, colluding, dropouts) != (None, False, 0, 0):
            raise InvalidInput(
                'bits, rotated, colluding, dropouts and discrete noise go with gradients = "broadcast": at its own '
                "state each client adds Gaussian noise that is enough by itself.",
                fix="Leave them out.",
            )
        trainer = DpSgd(noise_multiplier=noise_multiplier, **common)
        return Algorithm(trainer=trainer, server=server, as_published=as_published)
    parts = distributed_noise(
        noise, noise_multiplier, bits=bits, rotated=rotated, colluding=colluding, dropouts=dropouts
    )
    return Algorithm(trainer=BroadcastGradients(**common), server=server, **parts)


def ddp_fedavg_client(
    *,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    epochs: int | None = None,
    steps: int | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    noise_multiplier: float | None = None,
    noise: ShareNoise = "skellam",
    bits: int | None = None,
    rotated: bool = False,
    colluding: int = 0,
    dropouts: int = 0,
    sampling: AnySampling = Everyone(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """Distributed DP for whole clients (paper 002, Algorithm 3): any local training, one clip, one share of noise.

    Each client clips its update to C, rounds it onto the lattice, and adds its share of the noise of all, σ²C²; a
    secure sum adds them up (with noise = "gaussian", real numbers and a trusted sum). However many local steps there
    are, an update is one thing that is hidden, so here the paper's count is true. Protects all that a client sends,
    against the server of a secure sum and everybody after it.
    """
    parts = distributed_noise(
        noise,
        noise_multiplier,
        clip_norm=clip_norm,
        bits=bits,
        rotated=rotated,
        colluding=colluding,
        dropouts=dropouts,
    )
    trainer = local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay=weight_decay)
    return Algorithm(sampling=sampling, trainer=trainer, server=server, **parts)
