"""`discreet tradeoff epochs`: local epochs against rounds (PFL, Bhaskar et al. 2025)."""

from dataclasses import dataclass

from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import build_record
from discreet.planning.curves.tradeoff import Tradeoff


@dataclass(frozen=True, kw_only=True)
class EpochsOptions:
    """Local epochs E against rounds R at fixed E·R (PFL).

    The noise for epsilon, the exact cost of one round of E epochs beside the paper's rule of thumb, Theorem 2's bound
    as printed and corrected, and the noise that reaches the mean. The defaults are those of PFL (Bhaskar et al. 2025)
    for MNIST.
    """

    epsilon: tradeoff_options.TotalEpsilon = 2.93
    delta: tradeoff_options.Delta = 1e-5
    epochs: tradeoff_options.Epochs = 20
    clients: tradeoff_options.Clients = 10
    examples: tradeoff_options.Examples = 6000
    batch_size: tradeoff_options.BatchSize = 256
    clip_norm: tradeoff_options.GradientClip = 1.0
    learning_rate: tradeoff_options.LearningRate = 0.3
    dimension: tradeoff_options.Dimension = 26_010
    lipschitz: tradeoff_options.Lipschitz = 1.0

    def compute(self) -> Tradeoff:
        from discreet.planning.curves.epochs_tradeoff import EpochsTradeoff
        from discreet.planning.theory.pfl_local_epochs import Training

        return EpochsTradeoff(build_record(Training, self), self.epsilon, self.delta)
