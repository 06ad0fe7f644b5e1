"""Several local steps for any model under a sum of noise shares.

The proofs are in docs/notes/local_steps.md.
"""

from collections.abc import Sequence

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import DistributedGaussian
from discreet.algorithms.recipes.local_training import local_sgd
from discreet.algorithms.recipes.shared_noise import ShareNoise, distributed_noise
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import DenoisedRelease, Shards
from discreet.algorithms.training.per_round import as_tuple
from discreet.algorithms.training.schedules import AnySchedule, Constant


def denoised_release(
    *,
    learning_rate: float,
    clip_norm: float,
    sampling_rate: float | None = None,
    batch_size: int | None = None,
    local_steps: int | Sequence[int] | None = None,
    epochs: int | Sequence[int] | None = None,
    ratio: float = 1.0,
    noise_multiplier: float | None = None,
    shares: int | None = None,
    schedule: AnySchedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """Local DP-SGD for any model, whose noise drives the client's own state; what is sent is the gradients without it.

    w ← w − η/B·(g + N(0, σ_L²C²)) for each Poisson batch, and −η/B·Σg is sent with shares of noise of σ_Z for each
    step: σ_Z is noise_multiplier, and σ_L = ratio·σ_Z. A step counts at 1/σ² = 1/σ_L² + 1/σ_Z². The sum carries σ_Z,
    where noise added by each client alone would add up to √N·σ_L.

    Certified: single examples, against the public by the whole sum, and by one share against a server who sees uploads.

    Args:
        learning_rate: η.
        clip_norm: C, the norm that every example's gradient is clipped to.
        sampling_rate: Probability that an example is in a batch.
        batch_size: Expected batch size of the largest client, instead of sampling_rate.
        local_steps: Steps in a round. A list has one value for each round; its last value stays in force.
        epochs: Passes over the data, instead of local_steps.
        ratio: σ_L/σ_Z.
        noise_multiplier: σ_Z. None computes it from the promise.
        shares: Into how many shares the noise of the sum is divided. None: one for each client that may join.
        schedule: How the learning rate changes from round to round.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm whose clients bring the noise of the sum in shares.

    Raises:
        InvalidInput: If both or neither of sampling_rate and batch_size are given, or a number is out of range.

    Example:
        >>> denoised_release(learning_rate=0.5, sampling_rate=0.1, clip_norm=1.0, local_steps=2).trainer.steps
        (2,)
    """
    trainer = DenoisedRelease(
        steps=as_tuple(1 if local_steps is None and epochs is None else local_steps),
        epochs=as_tuple(epochs),
        sampling_rate=sampling_rate,
        batch_size=batch_size,
        clip_norm=clip_norm,
        ratio=ratio,
        learning_rate=learning_rate,
        schedule=schedule,
    )
    return Algorithm(
        trainer=trainer if noise_multiplier is None else trainer.with_noise(noise_multiplier),
        mechanism=DistributedGaussian(noise_multiplier=noise_multiplier, shares=shares),
        server=server,
    )


def shards(
    *,
    shards: int,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    epochs: int | None = None,
    steps: int | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    schedule: AnySchedule = Constant(),
    noise_multiplier: float | None = None,
    noise: ShareNoise = "gaussian",
    bits: int | None = None,
    colluding: int = 0,
    dropouts: int = 0,
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """Any local SGD on disjoint shards of each client's data, a clip on each shard's update, and their mean.

    An example is in one shard, and turns that shard's update of norm at most C into another. So it moves the mean of M
    shards by at most 2C/M, for any model and optimiser.

    Certified: single examples. With integer noise, against the server of a secure sum and everyone who sees less than
    the server. With "gaussian", against the public by the whole sum, and by one share against a server who sees
    uploads.

    Args:
        shards: M, the number of shards.
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        clip_norm: C, the norm that every shard's update is clipped to.
        epochs: Passes over a shard in a round. One if neither epochs nor steps is given.
        steps: Local steps in a round, instead of epochs.
        momentum: Momentum of the local steps; it starts at zero in every round.
        weight_decay: Weight decay of the local steps.
        schedule: How the learning rate changes from round to round.
        noise_multiplier: Noise multiplier of the sum. None computes it from the promise.
        noise: "skellam" or "discrete_gaussian" through a secure sum, or "gaussian" with a trusted sum.
        bits: Bits of a coordinate in the secure sum. None: as many as the sum needs.
        colluding: Clients assumed to share their noise with the server.
        dropouts: Clients that may drop out of a round.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm whose clients bring the noise in shares.

    Raises:
        InvalidInput: If both epochs and steps are given, or a number is out of range.

    Example:
        >>> shards(shards=2, learning_rate=0.1, batch_size=32, clip_norm=0.5).trainer.shards
        2
    """
    return Algorithm(
        trainer=Shards(
            shards=shards,
            clip_norm=clip_norm,
            local=local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay, schedule),
        ),
        server=server,
        **distributed_noise(noise, noise_multiplier, bits=bits, colluding=colluding, dropouts=dropouts),
    )
