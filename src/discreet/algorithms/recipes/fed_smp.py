"""Fed-SMP (Hu et al.): all clients send the same few coordinates, chosen without private data."""

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.central_noise import compose_central_gaussian
from discreet.algorithms.recipes.local_training import exponential_schedule, local_sgd
from discreet.algorithms.sparsifiers import PublicTopK, RandomK


def fed_smp_rand(
    *,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    fraction: float = 0.4,
    scaled: bool = False,
    epochs: int | None = None,
    steps: int | None = None,
    sampling_rate: float = 1.0,
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    decay: float = 1.0,
) -> Algorithm:
    """Fed-SMP with a random mask (Hu et al.): each round draws one public mask of k coordinates for all clients.

    Only those coordinates are clipped, sent and noised.

    Certified: as for dp_fedavg. The mask doesn't depend on data.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        clip_norm: The norm that every masked update is clipped to.
        fraction: k/d, the share of the model's d coordinates that is sent.
        scaled: Multiply what is sent by d/k, so that its expectation over masks is the whole update.
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
        >>> fed_smp_rand(learning_rate=0.1, batch_size=32, clip_norm=0.5).sparsifier.kind
        'random_k'
    """
    trainer = local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay, exponential_schedule(decay))
    sparsifier = RandomK(fraction=fraction, scaled=scaled)
    return compose_central_gaussian(trainer, clip_norm, noise_multiplier, sampling_rate, sparsifier=sparsifier)


def fed_smp_top(
    *,
    learning_rate: float,
    batch_size: int,
    clip_norm: float,
    fraction: float = 0.4,
    epochs: int | None = None,
    steps: int | None = None,
    sampling_rate: float = 1.0,
    noise_multiplier: float | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    decay: float = 1.0,
) -> Algorithm:
    """Fed-SMP with a mask from public data (Hu et al.): each round, the k largest entries of the server's update Δ⁰.

    The server trains the broadcast model on public data as a client would. All clients then send those coordinates
    only: clip(m∘Δ_i, C), sum, m∘N(0, σ²C²), divide by qM.

    Certified: as for dp_fedavg. The mask m depends on public data only.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        clip_norm: C, the norm that every masked update is clipped to.
        fraction: k/d, the share of the model's d coordinates that is sent.
        epochs: Passes over a client's data in a round. One if neither epochs nor steps is given.
        steps: Local steps in a round, instead of epochs.
        sampling_rate: q, the probability that a client joins a round.
        noise_multiplier: σ. None computes it from the promise.
        momentum: Momentum of the local steps; it starts at zero in every round.
        weight_decay: Weight decay of the local steps.
        decay: Factor on the learning rate after each round.

    Returns:
        An algorithm whose server adds the noise. It needs a task with public examples.

    Raises:
        InvalidInput: If both epochs and steps are given, or a number is out of range.

    Example:
        >>> fed_smp_top(learning_rate=0.1, batch_size=32, clip_norm=0.5).sparsifier.kind
        'public_top_k'
    """
    trainer = local_sgd(learning_rate, batch_size, epochs, steps, momentum, weight_decay, exponential_schedule(decay))
    sparsifier = PublicTopK(fraction=fraction)
    return compose_central_gaussian(trainer, clip_norm, noise_multiplier, sampling_rate, sparsifier=sparsifier)
