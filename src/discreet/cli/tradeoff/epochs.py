"""`discreet tradeoff epochs`: local epochs against rounds (PFL, Bhaskar et al. 2025)."""

from discreet.cli.output import Json
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_output import PictureFile, show_tradeoff


def epochs(
    epsilon: tradeoff_options.TotalEpsilon = 2.93,
    delta: tradeoff_options.Delta = 1e-5,
    epochs: tradeoff_options.Epochs = 20,
    clients: tradeoff_options.Clients = 10,
    examples: tradeoff_options.Examples = 6000,
    batch_size: tradeoff_options.BatchSize = 256,
    clip: tradeoff_options.GradientClip = 1.0,
    learning_rate: tradeoff_options.LearningRate = 0.3,
    dimension: tradeoff_options.Dimension = 26_010,
    lipschitz: tradeoff_options.Lipschitz = 1.0,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """Local epochs E against rounds R at fixed E·R (PFL).

    The noise for epsilon, the exact cost of one round of E epochs beside the paper's rule of thumb, Theorem 2's bound
    as printed and corrected, and the noise that reaches the mean. The defaults are those of PFL (Bhaskar et al. 2025)
    for MNIST.
    """
    from discreet.planning.curves.epochs_tradeoff import compute_epochs_tradeoff
    from discreet.planning.theory.pfl_local_epochs import Training

    training = Training(
        examples=examples,
        batch_size=batch_size,
        epochs=epochs,
        clients=clients,
        clip_norm=clip,
        learning_rate=learning_rate,
        dimension=dimension,
        lipschitz=lipschitz,
    )
    show_tradeoff(compute_epochs_tradeoff(training, epsilon, delta), picture, as_json=as_json)
