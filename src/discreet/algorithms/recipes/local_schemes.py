"""Several local steps under a sum of noise shares, soundly: what paper 002 wanted, each with its proof.

The proofs are in docs/notes/local_steps.md. All protect single examples. With noise = "skellam" or "discrete_gaussian"
the shares are integers for a secure sum, and protect against its server too; with "gaussian" whoever sums is trusted,
and a server who sees uploads is held off by one share.
"""

from collections.abc import Sequence

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import DistributedGaussian
from discreet.algorithms.recipes.local_training import local_sgd
from discreet.algorithms.recipes.shared_noise import ShareNoise, distributed_noise
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import ConvexLocal, DenoisedRelease, Shards
from discreet.algorithms.training.per_round import as_tuple
from discreet.algorithms.training.schedules import Constant, Schedule


def convex_local(
    *,
    learning_rate: float,
    clip_norm: float,
    feature_bound: float,
    batch_size: int | None = None,
    local_steps: int | None = None,
    sampling_rate: float = 1.0,
    noise_multiplier: float | None = None,
    noise: ShareNoise = "gaussian",
    bits: int | None = None,
    colluding: int = 0,
    dropouts: int = 0,
    schedule: Schedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """A noiseless local pass for linear heads: its steps never drive two models apart, so noise comes once a round.

    W ← W − γ/(F²B) Σ ĝ_i a_iᵀ for each batch: features a_i of norm at most F, gradients ĝ_i clipped by their margin to
    C, γ at most 4. One example moves the update by γC/(FB) at most, however many steps a round has: a round is one
    Gaussian mechanism. B is batch_size, or the largest client's examples over local_steps.
    """
    return Algorithm(
        trainer=ConvexLocal(
            learning_rate=learning_rate,
            clip_norm=clip_norm,
            feature_bound=feature_bound,
            batch_size=batch_size,
            steps=local_steps,
            sampling_rate=sampling_rate,
            schedule=schedule,
        ),
        server=server,
        **distributed_noise(noise, noise_multiplier, bits=bits, colluding=colluding, dropouts=dropouts),
    )


def proximal_local(
    *,
    learning_rate: float,
    clip_norm: float,
    feature_bound: float,
    passes: int,
    strength: float,
    batch_size: int | None = None,
    local_steps: int | None = None,
    sampling_rate: float = 1.0,
    noise_multiplier: float | None = None,
    noise: ShareNoise = "gaussian",
    bits: int | None = None,
    colluding: int = 0,
    dropouts: int = 0,
    schedule: Schedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """convex_local with several passes, pulled back to the broadcast model by (λ/2)·‖W−Wᵗ‖², λ = `strength`.

    γ is at most 4/(1 + 4λ), and each step then contracts by ρ = 1 − γλ. So E passes of S steps let one example move the
    update by γC/(FB) · Σ_{e<E} ρ^{Se}: hardly more than one pass does, where ρ^S is small.
    """
    return Algorithm(
        trainer=ConvexLocal(
            learning_rate=learning_rate,
            clip_norm=clip_norm,
            feature_bound=feature_bound,
            batch_size=batch_size,
            steps=local_steps,
            passes=passes,
            strength=strength,
            sampling_rate=sampling_rate,
            schedule=schedule,
        ),
        server=server,
        **distributed_noise(noise, noise_multiplier, bits=bits, colluding=colluding, dropouts=dropouts),
    )


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
    schedule: Schedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """Local DP-SGD for any model, whose noise drives the client's own state; what is sent is its gradients without it.

    w ← w − η/B·(g + N(0, σ_L²C²)) for each Poisson batch, and −η/B·Σg is sent, with shares of noise of σ_Z for each
    step: σ_Z is noise_multiplier, and σ_L = ratio·σ_Z. A step counts at 1/σ² = 1/σ_L² + 1/σ_Z². The sum carries σ_Z,
    where noise of each client's own would add up to √N·σ_L.
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
    schedule: Schedule = Constant(),
    noise_multiplier: float | None = None,
    noise: ShareNoise = "gaussian",
    bits: int | None = None,
    colluding: int = 0,
    dropouts: int = 0,
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """Any local SGD on disjoint shards of each client's data, a clip for each shard's update, and their mean.

    An example is in one shard, and turns its update of norm at most C into another: so it moves the mean of M by at
    most 2C/M, whatever the model and the optimiser.
    """
    return Algorithm(
        trainer=Shards(
            shards=shards,
            clip_norm=clip_norm,
            local=local_sgd(
                learning_rate, batch_size, epochs, steps, momentum, weight_decay=weight_decay, schedule=schedule
            ),
        ),
        server=server,
        **distributed_noise(noise, noise_multiplier, bits=bits, colluding=colluding, dropouts=dropouts),
    )
