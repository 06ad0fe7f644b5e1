"""`discreet tradeoff sam`: sharpness-aware local training, term by term (DP-FedSAM, Shi et al. 2023)."""

from typing import Annotated, TypeAlias

from discreet.cli.options import RATE
from discreet.cli.output import Json
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import AMOUNT, SCALE, number_option
from discreet.cli.tradeoff.tradeoff_output import PictureFile, show_tradeoff

LearningRate: TypeAlias = Annotated[
    float | None, number_option(SCALE, "A", "Learning rate of local steps.", show_default="1/(L√(KT))")
]
Radius: TypeAlias = Annotated[float, number_option(AMOUNT, "R", "Radius within which SAM looks for the worst loss.")]
NoiseMultiplier: TypeAlias = Annotated[float, number_option(SCALE, "Z", "Noise multiplier of the sum.")]
Fraction: TypeAlias = Annotated[float, number_option(RATE, "P", "Fraction of the parameters that is kept.")]
LocalDeviation: TypeAlias = Annotated[
    float, number_option(AMOUNT, "S", "Standard deviation of gradients within a client.")
]
GlobalDeviation: TypeAlias = Annotated[
    float, number_option(AMOUNT, "S", "Standard deviation of gradients between clients.")
]
Gap: TypeAlias = Annotated[float, number_option(SCALE, "G", "Loss at the start minus the best loss.")]
Clipped: TypeAlias = Annotated[
    float, number_option(RATE, "A", "Fraction of an update that remains after clipping, on average.")
]
Unlike: TypeAlias = Annotated[float, number_option(AMOUNT, "A", "How much clients differ in that fraction.")]


def sam(
    clients: tradeoff_options.Clients = 500,
    cohort: tradeoff_options.Cohort = 50,
    rounds: tradeoff_options.Rounds = 300,
    local_steps: tradeoff_options.LocalSteps = 60,
    learning_rate: LearningRate = None,
    radius: Radius = 0.5,
    clip: tradeoff_options.UpdateClip = 0.2,
    noise_multiplier: NoiseMultiplier = 0.95,
    dimension: tradeoff_options.Dimension = 11_173_962,
    fraction: Fraction = 1.0,
    delta: tradeoff_options.Delta = 2e-3,
    smoothness: tradeoff_options.Smoothness = 1.0,
    local_deviation: LocalDeviation = 1.0,
    global_deviation: GlobalDeviation = 1.0,
    gap: Gap = 1.0,
    clipped: Clipped = 1.0,
    unlike: Unlike = 1.0,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """Sharpness-aware local training, term by term (DP-FedSAM).

    The sensitivities of Theorem 1 and where they end, the terms of Theorem 3, the generalisation of Theorems 4 and 5,
    and the certified epsilon. The defaults are those of DP-FedSAM (Shi et al. 2023) for CIFAR-10, with 30 epochs of 2
    local steps; constants that nobody knows are 1.
    """
    from discreet.planning.curves.sam_tradeoff import compute_sam_tradeoff
    from discreet.planning.theory.dp_fedsam_bounds import LossConstants, SamRun

    run = SamRun(
        clients=clients,
        cohort=cohort,
        rounds=rounds,
        local_steps=local_steps,
        radius=radius,
        clip_norm=clip,
        noise_multiplier=noise_multiplier,
        dimension=dimension,
        fraction=fraction,
    )
    constants = LossConstants(
        smoothness=smoothness,
        local_deviation=local_deviation,
        global_deviation=global_deviation,
        gap=gap,
        clipped=clipped,
        unlike=unlike,
    )
    show_tradeoff(compute_sam_tradeoff(run, constants, delta, learning_rate), picture, as_json=as_json)
