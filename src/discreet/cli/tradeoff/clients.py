"""`discreet tradeoff clients`: what more clients bring (PFL, Bhaskar et al. 2025)."""

from typing import Annotated, TypeAlias

from discreet.cli.options import COUNT
from discreet.cli.output import Json
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import AMOUNT, SCALE, number_option
from discreet.cli.tradeoff.tradeoff_output import PictureFile, show_tradeoff

Pool: TypeAlias = Annotated[int, number_option(COUNT, "N", "Examples that all clients share, in the second table.")]
Loss: TypeAlias = Annotated[float, number_option(SCALE, "L", "Excess loss at which the utility is asked.")]
Bias: TypeAlias = Annotated[float, number_option(AMOUNT, "B", "Norm of the error in the mean of the models.")]


def clients(
    clients: tradeoff_options.ClientCounts = (1, 2, 5, 10, 25, 50, 100, 200, 500),
    epsilon: tradeoff_options.TotalEpsilon = 2.93,
    delta: tradeoff_options.Delta = 1e-5,
    epochs: tradeoff_options.Epochs = 20,
    examples: tradeoff_options.Examples = 6000,
    pool: Pool = 60_000,
    batch_size: tradeoff_options.BatchSize = 256,
    clip: tradeoff_options.GradientClip = 1.0,
    learning_rate: tradeoff_options.LearningRate = 0.3,
    dimension: tradeoff_options.Dimension = 26_010,
    lipschitz: tradeoff_options.Lipschitz = 1.0,
    loss: Loss = 0.5,
    bias: Bias = 0.0,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """The number of clients whose models are averaged (PFL).

    Theorem 3's utility as printed and corrected, and the noise of the mean when each client adds enough by itself or
    when only their sum has enough. The defaults are those of PFL (Bhaskar et al. 2025) for MNIST.
    """
    from discreet.planning.curves.clients_tradeoff import compute_clients_tradeoff
    from discreet.planning.theory.pfl_local_epochs import Training

    training = Training(
        examples=examples,
        batch_size=batch_size,
        epochs=epochs,
        clients=1,
        clip_norm=clip,
        learning_rate=learning_rate,
        dimension=dimension,
        lipschitz=lipschitz,
    )
    tradeoff = compute_clients_tradeoff(
        training, clients, epsilon=epsilon, delta=delta, loss=loss, bias=bias, pool=pool
    )
    show_tradeoff(tradeoff, picture, as_json=as_json)
