"""Fu et al. 2021: DP-FedAvg in which each client adds Laplace or Gaussian noise to its update."""

from collections.abc import Sequence
from typing import Any, Literal

from discreet.algorithms.aggregation import AnyAggregation, Plain
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import LocalNoise
from discreet.algorithms.sampling import AnySampling, Everyone, RoundRobin
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import GradientDescent
from discreet.algorithms.training.gradient_rules import L1Clip, L2Clip
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.errors import InvalidInput

MAX_ROUNDS = 10**6


def ldp_fedavg(
    *,
    learning_rate: float,
    gradient_bound: float,
    local_iterations: int = 1,
    total_iterations: int | None = None,
    noise: Literal["laplace", "gaussian"] = "laplace",
    cohort: int | None = None,
    noise_multiplier: float | Sequence[float] | None = None,
    schedule: AnySchedule = Constant(),
    aggregation: AnyAggregation = Plain(),
    server: AnyServer = ServerSgd(),
    as_published: bool = False,
) -> Algorithm:
    """DP-FedAvg with noise added by each client (Fu et al. 2021): E full-batch iterations, then noise once.

    θ ← θ − η·clip(∇L, ζ) for E local iterations. The update, of norm at most ζΣη, gets Laplace noise (ζ in L1) or
    Gaussian noise (ζ in L2). Clients take turns, `cohort` at a time. With T iterations in all, the last of ⌈T/E⌉ rounds
    is shorter. privacy.epsilon may be a list of one value for each client.

    Certified: all of a client's data, against the server and everyone who sees less than the server. Two updates may
    be 2ζΣη apart, and that is what is counted.

    Claimed, with as_published: the paper's ε, which counts half of that distance.

    Args:
        learning_rate: η, the learning rate.
        gradient_bound: ζ, the norm that every full-batch gradient is clipped to.
        local_iterations: E.
        total_iterations: T. None: every round has E iterations.
        noise: The kind of noise, and with it the norm of ζ.
        cohort: Clients that join a round. None: all.
        noise_multiplier: Noise scale over ζΣη. None computes it from the promise. A list has one value for each client.
        schedule: How the learning rate changes, by iterations counted over all rounds.
        aggregation: How the server takes the mean of the updates: as it is, or by "median" or "trimmed_mean".
        server: How the server moves the model by the mean update.
        as_published: Print the paper's ε as a claim beside the certified one.

    Returns:
        An algorithm whose clients add enough noise themselves.

    Raises:
        InvalidInput: If `noise` is unknown, or a number is out of range.

    Example:
        >>> ldp_fedavg(learning_rate=0.1, gradient_bound=1, local_iterations=5, total_iterations=12).trainer.iterations
        (5, 5, 2)
    """
    if noise not in ("laplace", "gaussian"):
        raise InvalidInput(f'noise must be "laplace" or "gaussian", and got {noise!r}.')
    E, T = local_iterations, total_iterations
    if E < 1 or (T is not None and T < 1):
        raise InvalidInput(f"local_iterations and total_iterations must be at least 1, and got {E} and {T}.")
    if T is not None and T > MAX_ROUNDS * E:
        raise InvalidInput(f"total_iterations must be at most {MAX_ROUNDS:,} times local_iterations, and got {T:,}.")
    iterations = (E,) if T is None else ((E,) * (T // E) + ((T % E,) if T % E else ())) or (T,)
    sampling: AnySampling = Everyone() if cohort is None else RoundRobin(cohort=cohort)
    laplace = noise == "laplace"
    noise_multipliers: Any = noise_multiplier  # one for all, or a list of one for each client
    return Algorithm(
        sampling=sampling,
        trainer=GradientDescent(
            learning_rate=learning_rate,
            iterations=iterations,
            gradient_clip=L1Clip(bound=gradient_bound) if laplace else L2Clip(bound=gradient_bound),
            schedule=schedule,
        ),
        mechanism=LocalNoise(kind="local_laplace" if laplace else "local_gaussian", noise_multiplier=noise_multipliers),
        aggregation=aggregation,
        server=server,
        as_published=as_published,
    )
