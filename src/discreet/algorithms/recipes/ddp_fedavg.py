"""Heikkilä 2025: federated learning whose clients each add a share of the noise, so that only the sum has enough."""

from collections.abc import Sequence
from typing import Any, Literal

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.local_training import local_sgd
from discreet.algorithms.recipes.shared_noise import ShareNoise, distributed_noise
from discreet.algorithms.sampling import AnySampling, Everyone
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import BroadcastGradients, DpSgd
from discreet.algorithms.training.per_round import as_tuple
from discreet.algorithms.training.schedules import AnySchedule, Constant
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
    schedule: AnySchedule = Constant(),
    server: AnyServer = ServerSgd(),
    as_published: bool = False,
) -> Algorithm:
    """Distributed DP with local steps (Heikkilä 2025): S noisy steps of every client, then the mean of their models.

    Each step sums clip(∇ℓ_i, C) over a Poisson batch and adds one share of the noise of all N clients, σ²C²/N.

    noise = "skellam" or "discrete_gaussian": integers through a secure sum, with enough noise even if `colluding`
    clients share theirs with the server and `dropouts` drop out. noise = "gaussian": real numbers, and the
    party that sums them is trusted.

    Certified: single examples, against the server of a secure sum and everyone who sees less than the server. With
    "gaussian", against the public by the whole sum, and by one share against a server who sees uploads. With
    gradients = "broadcast", all S gradients are taken at the broadcast model, and every step counts at the whole σ, as
    in the paper.

    With gradients = "local", as in the paper, gradients are taken at the client's own state, which carries only its own
    noise: if S > 1 only that noise is certified, and noise_multiplier is one client's. Claimed, with as_published: the
    number of the paper's Theorem 4.6.

    Args:
        learning_rate: Learning rate of the steps.
        clip_norm: C, the norm that every example's gradient is clipped to.
        sampling_rate: Probability that an example is in a batch.
        batch_size: Expected batch size of the largest client, instead of sampling_rate.
        local_steps: S. A list has one value for each round; its last value stays in force.
        epochs: Passes over the data, instead of local_steps.
        gradients: Where gradients are taken.
        noise_multiplier: σ of the sum. None computes it from the promise.
        noise: The kind of noise.
        bits: Bits of a coordinate in the secure sum. None: as many as the sum needs.
        rotated: Spread each update over its coordinates by a public rotation, which pays when bits are few.
        colluding: Clients assumed to share their noise with the server.
        dropouts: Clients that may drop out of a round.
        schedule: How the learning rate changes from round to round.
        server: How the server moves the model by the mean update.
        as_published: With gradients = "local", print the paper's ε as a claim beside the certified one.

    Returns:
        An algorithm whose clients bring the noise in shares; with gradients = "local", each brings enough by itself.

    Raises:
        InvalidInput: If arguments don't go together, or a number is out of range.

    Example:
        >>> ddp_fedavg(learning_rate=0.5, sampling_rate=0.1, clip_norm=1.0, local_steps=2).mechanism.kind
        'skellam'
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
    noise_parts = distributed_noise(
        noise, noise_multiplier, bits=bits, rotated=rotated, colluding=colluding, dropouts=dropouts
    )
    return Algorithm(trainer=BroadcastGradients(**common), server=server, **noise_parts)


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
    """Distributed DP for whole clients (Heikkilä 2025, Algorithm 3): local training, one clip, one share of noise.

    Each client clips its update to C, rounds it onto the lattice and adds its share of the noise of all, σ²C². A secure
    sum adds them up. With noise = "gaussian" they are real numbers, and the party that sums them is trusted.

    Certified: all that a client sends, against the server of a secure sum and everyone who sees less than the server.
    An update is clipped as a whole, so the paper's count holds for any number of local steps.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        clip_norm: C, the norm that every update is clipped to.
        epochs: Passes over a client's data in a round. One if neither epochs nor steps is given.
        steps: Local steps in a round, instead of epochs.
        momentum: Momentum of the local steps; it starts at zero in every round.
        weight_decay: Weight decay of the local steps.
        noise_multiplier: σ of the sum. None computes it from the promise.
        noise: The kind of noise.
        bits: Bits of a coordinate in the secure sum. None: as many as the sum needs.
        rotated: Spread each update over its coordinates by a public rotation, which pays when bits are few.
        colluding: Clients assumed to share their noise with the server.
        dropouts: Clients that may drop out of a round.
        sampling: Which clients join a round.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm whose clients bring the noise in shares.

    Raises:
        InvalidInput: If arguments don't go together, or a number is out of range.

    Example:
        >>> ddp_fedavg_client(learning_rate=0.1, batch_size=32, clip_norm=0.5).aggregation.kind
        'lattice'
    """
    noise_parts = distributed_noise(
        noise,
        noise_multiplier,
        clip_norm=clip_norm,
        bits=bits,
        rotated=rotated,
        colluding=colluding,
        dropouts=dropouts,
    )
    trainer = local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay=weight_decay)
    return Algorithm(sampling=sampling, trainer=trainer, server=server, **noise_parts)
