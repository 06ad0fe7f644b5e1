"""DP-FedAvg (McMahan et al. 2018), and with bounded, sparse local updates (Cheng et al. 2022)."""

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.central_noise import compose_central_gaussian
from discreet.algorithms.recipes.local_training import exponential_schedule, local_sgd
from discreet.algorithms.sampling import AnySampling
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.sparsifiers import TopK
from discreet.algorithms.training.gradient_rules import Blur


def dp_fedavg(
    *,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    epochs: int | None = None,
    steps: int | None = None,
    sampling_rate: float = 1.0,
    sampling: AnySampling | None = None,
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    decay: float = 1.0,
    server: AnyServer = ServerSgd(),
) -> Algorithm:
    """DP-FedAvg (McMahan et al. 2018): clip each client's update to C, sum, add N(0, σ²C²), divide by qM.

    Certified: whole clients, against those who see only released models. The server is trusted.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        clip_norm: C, the norm that every update is clipped to.
        epochs: Passes over a client's data in a round. One if neither epochs nor steps is given.
        steps: Local steps in a round, instead of epochs.
        sampling_rate: q, the probability that a client joins a round.
        sampling: Another draw of the cohort, instead of sampling_rate.
        noise_multiplier: σ. None computes it from the promise.
        momentum: Momentum of the local steps; it starts at zero in every round.
        weight_decay: Weight decay of the local steps.
        decay: Factor on the learning rate after each round.
        server: How the server moves the model by the mean update.

    Returns:
        An algorithm whose server adds the noise.

    Raises:
        InvalidInput: If both epochs and steps, or both sampling and sampling_rate are given, or a number is out of
            range.

    Example:
        >>> dp_fedavg(learning_rate=0.1, batch_size=32, clip_norm=0.5, sampling_rate=0.1).mechanism.kind
        'gaussian'
    """
    trainer = local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay, exponential_schedule(decay))
    return compose_central_gaussian(trainer, clip_norm, noise_multiplier, sampling_rate, sampling, server)


def dp_fedavg_blur(
    *,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    strength: float,
    epochs: int | None = None,
    steps: int | None = None,
    sampling_rate: float = 1.0,
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    decay: float = 1.0,
) -> Algorithm:
    """DP-FedAvg with bounded local update regularisation (BLUR, Cheng et al. 2022).

    The local loss gains (λ/2)·max(0, ‖w−wᵗ‖² − C²), λ = `strength`, which keeps updates near the clip norm.

    Certified: as for dp_fedavg. The regulariser changes no guarantee.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        clip_norm: C, the norm that every update is clipped to, and the radius inside which BLUR does nothing.
        strength: λ, the pull back into the ball of radius C around the broadcast model.
        epochs: Passes over a client's data in a round. One if neither epochs nor steps is given.
        steps: Local steps in a round, instead of epochs.
        sampling_rate: Probability that a client joins a round.
        noise_multiplier: σ. None computes it from the promise.
        momentum: Momentum of the local steps; it starts at zero in every round.
        weight_decay: Weight decay of the local steps.
        decay: Factor on the learning rate after each round.

    Returns:
        An algorithm whose server adds the noise.

    Raises:
        InvalidInput: If both epochs and steps are given, or a number is out of range.

    Example:
        >>> dp_fedavg_blur(learning_rate=0.1, batch_size=32, clip_norm=0.5, strength=0.1).trainer.regulariser.radius
        0.5
    """
    blur = Blur(radius=clip_norm, strength=strength)
    trainer = local_sgd(
        learning_rate, batch_size, epochs, steps, momentum, weight_decay, exponential_schedule(decay), regulariser=blur
    )
    return compose_central_gaussian(trainer, clip_norm, noise_multiplier, sampling_rate)


def dp_fedavg_blurs(
    *,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    strength: float,
    fraction: float = 0.4,
    epochs: int | None = None,
    steps: int | None = None,
    sampling_rate: float = 1.0,
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    decay: float = 1.0,
) -> Algorithm:
    """BLUR with local update sparsification (LUS, Cheng et al. 2022): each layer's largest values, before the clip.

    Zeroed coordinates leave more of the clip norm to the others. The noise stays dense, so which coordinates were
    zeroed is hidden too.

    Certified: as for dp_fedavg.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        clip_norm: C, the norm that every update is clipped to, and the radius inside which BLUR does nothing.
        strength: λ, the pull back into the ball of radius C around the broadcast model.
        fraction: Share of each layer's coordinates that a client keeps.
        epochs: Passes over a client's data in a round. One if neither epochs nor steps is given.
        steps: Local steps in a round, instead of epochs.
        sampling_rate: Probability that a client joins a round.
        noise_multiplier: σ. None computes it from the promise.
        momentum: Momentum of the local steps; it starts at zero in every round.
        weight_decay: Weight decay of the local steps.
        decay: Factor on the learning rate after each round.

    Returns:
        An algorithm whose server adds the noise.

    Raises:
        InvalidInput: If both epochs and steps are given, or a number is out of range.

    Example:
        >>> dp_fedavg_blurs(learning_rate=0.1, batch_size=32, clip_norm=0.5, strength=0.1).sparsifier.fraction
        0.4
    """
    blur = Blur(radius=clip_norm, strength=strength)
    trainer = local_sgd(
        learning_rate, batch_size, epochs, steps, momentum, weight_decay, exponential_schedule(decay), regulariser=blur
    )
    sparsifier = TopK(fraction=fraction)
    return compose_central_gaussian(trainer, clip_norm, noise_multiplier, sampling_rate, sparsifier=sparsifier)
