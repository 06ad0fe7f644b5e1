"""Client-level privacy by a trusted server, which recipes of DP-FedAvg and its variants share."""

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import AnyMechanism, Gaussian
from discreet.algorithms.sampling import AnySampling, Everyone, Poisson
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.sparsifiers import AllCoordinates, AnySparsifier
from discreet.algorithms.training import LocalSgd
from discreet.errors import InvalidInput


def compose_central_gaussian(
    trainer: LocalSgd,
    clip_norm: float,
    noise_multiplier: float | None,
    sampling_rate: float,
    sampling: AnySampling | None = None,
    server: AnyServer = ServerSgd(),
    sparsifier: AnySparsifier = AllCoordinates(),
) -> Algorithm:
    """Clip each client's update, sum, and let the server add Gaussian noise to the sum.

    Args:
        trainer: What a client does in a round.
        clip_norm: The norm that every update is clipped to.
        noise_multiplier: Noise deviation over clip_norm; None until it is computed from the promise.
        sampling_rate: Probability that a client joins a round.
        sampling: Another draw of the cohort, instead of sampling_rate.
        server: How the server moves the model by the mean update.
        sparsifier: Which coordinates of an update are sent.

    Raises:
        InvalidInput: If both sampling and a sampling_rate below 1 are given.
    """
    mechanism: AnyMechanism = Gaussian(clip_norm=clip_norm, noise_multiplier=noise_multiplier)
    if sampling is not None and sampling_rate != 1:
        raise InvalidInput("Give either sampling or sampling_rate, and got both.", fix="Leave one of them out.")
    cohort = sampling or (Everyone() if sampling_rate == 1 else Poisson(rate=sampling_rate))
    return Algorithm(sampling=cohort, trainer=trainer, sparsifier=sparsifier, mechanism=mechanism, server=server)
