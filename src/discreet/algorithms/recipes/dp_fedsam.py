"""DP-FedSAM (Shi et al. 2023): DP-FedAvg with sharpness-aware local steps, with and without top-k."""

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import DistributedGaussian
from discreet.algorithms.recipes.central_noise import compose_central_gaussian
from discreet.algorithms.recipes.local_training import exponential_schedule, local_sgd
from discreet.algorithms.sampling import Everyone, FixedSize
from discreet.algorithms.sparsifiers import PublishedTopK, TopK
from discreet.algorithms.training.gradient_rules import Asam, Sam
from discreet.errors import InvalidInput


def dp_fedsam(
    *,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    rho: float = 0.5,
    adaptive: bool = False,
    epochs: int | None = None,
    steps: int | None = None,
    sampling_rate: float = 1.0,
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    decay: float = 1.0,
) -> Algorithm:
    """DP-FedSAM (Shi et al. 2023): local steps follow the gradient at w + ρ·g/‖g‖, towards flatter minima (SAM).

    Then clip, sum, add noise and divide as in dp_fedavg.

    Certified: as for dp_fedavg. SAM changes no guarantee.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        clip_norm: The norm that every update is clipped to.
        rho: ρ, how far from w the gradient is taken.
        adaptive: Use ASAM, as the paper's code does.
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
        >>> dp_fedsam(learning_rate=0.1, batch_size=32, clip_norm=0.5, adaptive=True).trainer.perturbation.kind
        'asam'
    """
    sam = Asam(rho=rho) if adaptive else Sam(rho=rho)
    trainer = local_sgd(
        learning_rate, batch_size, epochs, steps, momentum, weight_decay, exponential_schedule(decay), perturbation=sam
    )
    return compose_central_gaussian(trainer, clip_norm, noise_multiplier, sampling_rate)


def dp_fedsam_top(
    *,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    rho: float = 0.5,
    adaptive: bool = False,
    fraction: float = 0.4,
    cohort: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    sampling_rate: float = 1.0,
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    decay: float = 1.0,
    as_published: bool = False,
) -> Algorithm:
    """DP-FedSAM-top_k (Shi et al. 2023): DP-FedSAM whose clients keep only the largest coordinates of each layer.

    Certified: as for dp_fedavg. Coordinates are chosen before the clip, and the noise is dense.

    Claimed, with as_published: the paper's ε. Clients then choose coordinates of their noisy update, which removes
    noise from the sum; certified is only what one upload hides by itself, z/√m.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        clip_norm: The norm that every update is clipped to.
        rho: ρ, how far from w the gradient is taken.
        adaptive: Use ASAM, as the paper's code does.
        fraction: Share of each layer's coordinates that a client keeps.
        cohort: Clients drawn for a round; only with as_published. None: all.
        epochs: Passes over a client's data in a round. One if neither epochs nor steps is given.
        steps: Local steps in a round, instead of epochs.
        sampling_rate: Probability that a client joins a round; not with as_published.
        noise_multiplier: σ. None computes it from the promise.
        momentum: Momentum of the local steps; it starts at zero in every round.
        weight_decay: Weight decay of the local steps.
        decay: Factor on the learning rate after each round.
        as_published: Choose coordinates after the noise, in the paper's order.

    Returns:
        An algorithm whose server adds the noise; with as_published, whose clients add shares of it.

    Raises:
        InvalidInput: If cohort is given without as_published, sampling_rate with it, both epochs and steps are given,
            or a number is out of range.

    Example:
        >>> dp_fedsam_top(learning_rate=0.1, batch_size=32, clip_norm=0.5).sparsifier.kind
        'top_k'
    """
    sam = Asam(rho=rho) if adaptive else Sam(rho=rho)
    trainer = local_sgd(
        learning_rate, batch_size, epochs, steps, momentum, weight_decay, exponential_schedule(decay), perturbation=sam
    )
    if not as_published and cohort is not None:
        raise InvalidInput("cohort goes with as_published.", fix="Give sampling_rate instead.")
    if not as_published:
        sparsifier = TopK(fraction=fraction)
        return compose_central_gaussian(trainer, clip_norm, noise_multiplier, sampling_rate, sparsifier=sparsifier)
    if sampling_rate != 1:
        raise InvalidInput("As published, cohorts have a fixed size, and no sampling rate.", fix="Give cohort instead.")
    return Algorithm(
        sampling=Everyone() if cohort is None else FixedSize(cohort=cohort),
        trainer=trainer,
        sparsifier=PublishedTopK(fraction=fraction),
        mechanism=DistributedGaussian(clip_norm=clip_norm, noise_multiplier=noise_multiplier),
        as_published=True,
    )
