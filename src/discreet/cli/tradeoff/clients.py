"""`discreet tradeoff clients`: what more clients bring (PFL, Bhaskar et al. 2025)."""

from dataclasses import dataclass
from typing import Annotated

from discreet.cli.options import COUNT, number_option
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import AMOUNT, SCALE, build_record
from discreet.planning.curves.tradeoff import Tradeoff


@dataclass(frozen=True, kw_only=True)
class ClientsOptions:
    """The number of clients whose models are averaged (PFL).

    Theorem 3's utility as printed and corrected, and the noise of the mean when each client adds enough by itself or
    when only their sum has enough. The defaults are those of PFL (Bhaskar et al. 2025) for MNIST.
    """

    clients: tradeoff_options.ClientCounts = (1, 2, 5, 10, 25, 50, 100, 200, 500)
    epsilon: tradeoff_options.TotalEpsilon = 2.93
    delta: tradeoff_options.Delta = 1e-5
    epochs: tradeoff_options.Epochs = 20
    examples: tradeoff_options.Examples = 6000
    pool: Annotated[int, number_option(COUNT, "N", "Examples that all clients share, in the second table.")] = 60_000
    batch_size: tradeoff_options.BatchSize = 256
    clip_norm: tradeoff_options.GradientClip = 1.0
    learning_rate: tradeoff_options.LearningRate = 0.3
    dimension: tradeoff_options.Dimension = 26_010
    lipschitz: tradeoff_options.Lipschitz = 1.0
    loss: Annotated[float, number_option(SCALE, "L", "Excess loss at which the utility is asked.")] = 0.5
    bias: Annotated[float, number_option(AMOUNT, "B", "Norm of the error in the mean of the models.")] = 0.0

    def compute(self) -> Tradeoff:
        from discreet.planning.curves.clients_tradeoff import ClientsTradeoff
        from discreet.planning.theory.pfl_local_epochs import Training

        training = build_record(Training, self, clients=1)
        return build_record(ClientsTradeoff, self, training=training, counts=self.clients)
