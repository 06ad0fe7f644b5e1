"""`discreet tradeoff sam`: sharpness-aware local training, term by term (DP-FedSAM, Shi et al. 2023)."""

from dataclasses import dataclass
from typing import Annotated

from discreet.cli.options import RATE, number_option
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import AMOUNT, SCALE, build_record
from discreet.planning.curves.tradeoff import Tradeoff


@dataclass(frozen=True, kw_only=True)
class SamOptions:
    """Sharpness-aware local training, term by term (DP-FedSAM).

    The sensitivities of Theorem 1 and where they end, the terms of Theorem 3, the generalisation of Theorems 4 and 5,
    and the certified epsilon. The defaults are those of DP-FedSAM (Shi et al. 2023) for CIFAR-10, with 30 epochs of 2
    local steps; constants that nobody knows are 1.
    """

    clients: tradeoff_options.Clients = 500
    cohort: tradeoff_options.Cohort = 50
    rounds: tradeoff_options.Rounds = 300
    local_steps: tradeoff_options.LocalSteps = 60
    learning_rate: Annotated[
        float | None, number_option(SCALE, "A", "Learning rate of local steps.", default="1/(L√(KT))")
    ] = None
    radius: Annotated[float, number_option(AMOUNT, "R", "Radius within which SAM looks for the worst loss.")] = 0.5
    clip_norm: Annotated[float, number_option(SCALE, "C", "Largest norm of a clipped update.", "--clip")] = 0.2
    noise_multiplier: Annotated[float, number_option(SCALE, "Z", "Noise multiplier of the sum.")] = 0.95
    dimension: tradeoff_options.Dimension = 11_173_962
    fraction: Annotated[float, number_option(RATE, "P", "Fraction of the parameters that is kept.")] = 1.0
    delta: tradeoff_options.Delta = 2e-3
    smoothness: tradeoff_options.Smoothness = 1.0
    local_deviation: Annotated[
        float, number_option(AMOUNT, "S", "Standard deviation of gradients within a client.")
    ] = 1.0
    global_deviation: Annotated[
        float, number_option(AMOUNT, "S", "Standard deviation of gradients between clients.")
    ] = 1.0
    gap: Annotated[float, number_option(SCALE, "G", "Loss at the start minus the best loss.")] = 1.0
    clipped: Annotated[
        float, number_option(RATE, "A", "Fraction of an update that remains after clipping, on average.")
    ] = 1.0
    unlike: Annotated[float, number_option(AMOUNT, "A", "How much clients differ in that fraction.")] = 1.0

    def compute(self) -> Tradeoff:
        from discreet.planning.curves.sam_tradeoff import compute_sam_tradeoff
        from discreet.planning.theory.dp_fedsam_bounds import LossConstants, SamRun

        run, constants = build_record(SamRun, self), build_record(LossConstants, self)
        return compute_sam_tradeoff(run, constants, self.delta, self.learning_rate)
