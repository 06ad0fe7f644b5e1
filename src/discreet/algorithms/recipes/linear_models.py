"""Several local steps for linear models under one noise a round, with or without a pull to the broadcast model.

The proofs are in docs/notes/local_steps.md.
"""

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.shared_noise import ShareNoise, distributed_noise
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import ConvexLocal
from discreet.algorithms.training.schedules import AnySchedule, Constant


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
    schedule: AnySchedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """A noiseless local pass for linear models, whose steps never move two models apart, and noise once a round.

    W ← W − γ/(F²B) Σ ĝ_i a_iᵀ for each batch, with features a_i of norm at most F, gradients ĝ_i clipped by their
    margin to C, and γ at most 4. One example moves the update by at most γC/(FB), however many steps a round has: a
    round is one Gaussian mechanism.

    Certified: single examples. With integer noise, against the server of a secure sum and everyone who sees less than
    the server. With "gaussian", against the public by the whole sum, and by one share against a server who sees
    uploads.

    Args:
        learning_rate: γ, at most 4.
        clip_norm: C, the bound on an example's gradient in the logits.
        feature_bound: F, the norm that an example's features are scaled down to.
        batch_size: B.
        local_steps: Steps of the largest client in a pass, instead of batch_size.
        sampling_rate: Probability that an example takes part in a round.
        noise_multiplier: Noise multiplier of the sum. None computes it from the promise.
        noise: "skellam" or "discrete_gaussian" through a secure sum, or "gaussian" with a trusted sum.
        bits: Bits of a coordinate in the secure sum. None: as many as the sum needs.
        colluding: Clients assumed to share their noise with the server.
        dropouts: Clients that may drop out of a round.
        schedule: How the learning rate changes from round to round.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm whose clients bring the noise in shares. It trains one linear layer under cross-entropy.

    Raises:
        InvalidInput: If both or neither of batch_size and local_steps are given, or a number is out of range.

    Example:
        >>> convex_local(learning_rate=2.0, clip_norm=0.5, feature_bound=3.0, batch_size=4).trainer.passes
        1
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
    schedule: AnySchedule = Constant(),
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """convex_local with several passes, pulled back to the broadcast model by (λ/2)·‖W−Wᵗ‖², λ = `strength`.

    γ is at most 4/(1 + 4λ), and each step contracts by ρ = 1 − γλ. So in E passes of S steps one example moves the
    update by at most γC/(FB) · Σ_{e<E} ρ^{Se}: hardly more than in one pass if ρ^S is small.

    Certified: as for convex_local.

    Args:
        learning_rate: γ, at most 4/(1 + 4λ).
        clip_norm: C, the bound on an example's gradient in the logits.
        feature_bound: F, the norm that an example's features are scaled down to.
        passes: E.
        strength: λ, the pull towards the broadcast model Wᵗ.
        batch_size: B.
        local_steps: Steps of the largest client in a pass, instead of batch_size.
        sampling_rate: Probability that an example takes part in a round.
        noise_multiplier: Noise multiplier of the sum. None computes it from the promise.
        noise: "skellam" or "discrete_gaussian" through a secure sum, or "gaussian" with a trusted sum.
        bits: Bits of a coordinate in the secure sum. None: as many as the sum needs.
        colluding: Clients assumed to share their noise with the server.
        dropouts: Clients that may drop out of a round.
        schedule: How the learning rate changes from round to round.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm whose clients bring the noise in shares. It trains one linear layer under cross-entropy.

    Raises:
        InvalidInput: If both or neither of batch_size and local_steps are given, or a number is out of range.

    Example:
        >>> proximal_local(
        ...     learning_rate=2.0, clip_norm=0.5, feature_bound=3.0, batch_size=4, passes=2, strength=0.1
        ... ).trainer.passes
        2
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
