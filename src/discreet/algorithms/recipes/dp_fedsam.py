"""Paper 004: DP-FedSAM, with and without top-k, and its baselines: one composition with different pieces."""

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import AnyMechanism, DistributedGaussian, Gaussian
from discreet.algorithms.recipes.local_training import local_sgd
from discreet.algorithms.sampling import AnySampling, Everyone, FixedSize, Poisson
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.sparsifiers import All, AnySparsifier, PublicTopK, PublishedTopK, RandomK, TopK
from discreet.algorithms.training import LocalSgd
from discreet.algorithms.training.gradient_rules import AnyPerturbation, Asam, Blur, Sam
from discreet.algorithms.training.schedules import Constant, Exponential, Schedule
from discreet.errors import InvalidInput


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

    The learning rate is multiplied by `decay` after each round. Protects whole clients, against those who see released
    models; the server is trusted.
    """
    trainer = local_sgd(
        learning_rate, batch_size, epochs, steps, momentum, weight_decay=weight_decay, schedule=_decayed(decay)
    )
    return _central(trainer, clip_norm, noise_multiplier, sampling_rate, sampling, server)


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

    The local loss gains (λ/2)·max(0, ‖w−wᵗ‖² − C²), λ = `strength`: updates stay near the clip by themselves. Protects
    as dp_fedavg does.
    """
    blur = Blur(radius=clip_norm, strength=strength)
    trainer = local_sgd(
        learning_rate,
        batch_size,
        epochs,
        steps,
        momentum,
        weight_decay=weight_decay,
        schedule=_decayed(decay),
        regulariser=blur,
    )
    return _central(trainer, clip_norm, noise_multiplier, sampling_rate)


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
    """BLUR with local update sparsification (LUS, Cheng et al. 2022): the largest of each layer, before the clip.

    Zeroed coordinates leave more of the clip to the others; the noise stays dense, so what was zeroed tells nothing.
    Protects as dp_fedavg does.
    """
    blur = Blur(radius=clip_norm, strength=strength)
    trainer = local_sgd(
        learning_rate,
        batch_size,
        epochs,
        steps,
        momentum,
        weight_decay=weight_decay,
        schedule=_decayed(decay),
        regulariser=blur,
    )
    return _central(trainer, clip_norm, noise_multiplier, sampling_rate, sparsifier=TopK(fraction=fraction))


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
    """Fed-SMP with a random mask (Hu et al.): in each round one mask of k coordinates for all, public and at random.

    Only those are sent, clipped and noised; `scaled` multiplies them by d/k, which keeps the update unbiased. Protects
    as dp_fedavg does.
    """
    trainer = local_sgd(
        learning_rate, batch_size, epochs, steps, momentum, weight_decay=weight_decay, schedule=_decayed(decay)
    )
    mask = RandomK(fraction=fraction, scaled=scaled)
    return _central(trainer, clip_norm, noise_multiplier, sampling_rate, sparsifier=mask)


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
    """Fed-SMP with a mask from public data (Hu et al.): in each round the k largest |Δ⁰| of the server's own update Δ⁰.

    The server trains the broadcast model on public data as a client would. Then all clients send those coordinates
    only: clip(m∘Δ_i, C), sum, m∘N(0, σ²C²), divide by qM. The mask m knows nothing of any client, so this protects as
    dp_fedavg does; it needs a task with public examples.
    """
    trainer = local_sgd(
        learning_rate, batch_size, epochs, steps, momentum, weight_decay=weight_decay, schedule=_decayed(decay)
    )
    return _central(trainer, clip_norm, noise_multiplier, sampling_rate, sparsifier=PublicTopK(fraction=fraction))


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
    """DP-FedSAM (paper 004): local steps follow the gradient at w + ρ·g/‖g‖, towards flatter minima (SAM).

    Then clip, sum, noise and divide as in dp_fedavg. `adaptive` is ASAM, which the paper's code runs. Protects as
    dp_fedavg does: SAM itself changes no guarantee.
    """
    trainer = local_sgd(
        learning_rate,
        batch_size,
        epochs,
        steps,
        momentum,
        weight_decay=weight_decay,
        schedule=_decayed(decay),
        perturbation=_sam(rho, adaptive),
    )
    return _central(trainer, clip_norm, noise_multiplier, sampling_rate)


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
    """DP-FedSAM-top_k (paper 004): DP-FedSAM of which each client sends the largest coordinates of each layer.

    They are chosen before the clip, and the noise is dense. With as_published they are chosen from the client's noisy
    update, of which `cohort` are summed: then only what one upload hides, z/√m, is certified, and the paper's ε is
    printed as a claim. Protects as dp_fedavg does.
    """
    trainer = local_sgd(
        learning_rate,
        batch_size,
        epochs,
        steps,
        momentum,
        weight_decay=weight_decay,
        schedule=_decayed(decay),
        perturbation=_sam(rho, adaptive),
    )
    if not as_published and cohort is not None:
        raise InvalidInput("cohort goes with as_published.", fix="Give sampling_rate instead.")
    if not as_published:
        return _central(trainer, clip_norm, noise_multiplier, sampling_rate, sparsifier=TopK(fraction=fraction))
    if sampling_rate != 1:
        raise InvalidInput("As published, cohorts have a fixed size, and no sampling rate.", fix="Give cohort instead.")
    return Algorithm(
        sampling=Everyone() if cohort is None else FixedSize(cohort=cohort),
        trainer=trainer,
        sparsifier=PublishedTopK(fraction=fraction),
        mechanism=DistributedGaussian(clip_norm=clip_norm, noise_multiplier=noise_multiplier),
        as_published=True,
    )


def _sam(rho: float, adaptive: bool) -> AnyPerturbation:
    return Asam(rho=rho) if adaptive else Sam(rho=rho)


def _decayed(decay: float) -> Schedule:
    return Constant() if decay == 1 else Exponential(decay=decay)


def _central(
    trainer: LocalSgd,
    clip_norm: float,
    noise_multiplier: float | None,
    sampling_rate: float,
    sampling: AnySampling | None = None,
    server: AnyServer = ServerSgd(),
    sparsifier: AnySparsifier = All(),
) -> Algorithm:
    mechanism: AnyMechanism = Gaussian(clip_norm=clip_norm, noise_multiplier=noise_multiplier)
    if sampling is not None and sampling_rate != 1:
        raise InvalidInput("Who joins is said twice, by sampling and by sampling_rate.", fix="Give one of the two.")
    chosen = sampling or (Everyone() if sampling_rate == 1 else Poisson(rate=sampling_rate))
    return Algorithm(sampling=chosen, trainer=trainer, sparsifier=sparsifier, mechanism=mechanism, server=server)
