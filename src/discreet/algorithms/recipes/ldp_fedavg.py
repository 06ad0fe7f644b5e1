"""Paper 003: DP-FedAvg in which every client adds Laplace or Gaussian noise of its own."""

from collections.abc import Sequence
from typing import Any, Literal

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import LocalNoise
from discreet.algorithms.sampling import AnySampling, Everyone, RoundRobin
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.training import GradientDescent
from discreet.algorithms.training.gradient_rules import L1Clip, L2Clip
from discreet.algorithms.training.schedules import Constant, Schedule
from discreet.errors import InvalidInput

MOST = 10**6  # rounds


def ldp_fedavg(
    *,
    learning_rate: float,
    gradient_bound: float,
    local_iterations: int = 1,
    total_iterations: int | None = None,
    noise: Literal["laplace", "gaussian"] = "laplace",
    cohort: int | None = None,
    noise_multiplier: float | Sequence[float] | None = None,
    schedule: Schedule = Constant(),
    server: AnyServer = ServerSgd(),
    as_published: bool = False,
) -> Algorithm:
    """DP-FedAvg with noise of each client's own (paper 003): E full-batch iterations, then noise once.

    θ ← θ − η·clip(∇L, ζ) for E local iterations; the update, of norm at most ζΣη, gets Laplace noise (ζ in L1) or
    Gaussian noise (ζ in L2); clients take turns, `cohort` at a time. With T in all, the last of ⌈T/E⌉ rounds is
    shorter. Two updates lie up to 2ζΣη apart: that is certified; with as_published the paper's half of it is printed
    as a claim. noise_multiplier and privacy.epsilon may be lists of one for each client. Protects all of a client's
    data, against the server and everybody after it.
    """
    if noise not in ("laplace", "gaussian"):
        raise InvalidInput(f'noise must be "laplace" or "gaussian", and got {noise!r}.')
    E, T = local_iterations, total_iterations
    if E < 1 or (T is not None and T < 1):
        raise InvalidInput(f"local_iterations and total_iterations must be at least 1, and got {E} and {T}.")
    if T is not None and T > MOST * E:
        raise InvalidInput(f"total_iterations must be at most {MOST:,} times local_iterations, and got {T:,}.")
    iterations = (E,) if T is None else ((E,) * (T // E) + ((T % E,) if T % E else ())) or (T,)
    sampling: AnySampling = Everyone() if cohort is None else RoundRobin(cohort=cohort)
    laplace = noise == "laplace"
    own: Any = noise_multiplier  # one for all, or a list of one for each client
    return Algorithm(
        sampling=sampling,
        trainer=GradientDescent(
            learning_rate=learning_rate,
            iterations=iterations,
            gradient_clip=L1Clip(bound=gradient_bound) if laplace else L2Clip(bound=gradient_bound),
            schedule=schedule,
        ),
        mechanism=LocalNoise(kind="local_laplace" if laplace else "local_gaussian", noise_multiplier=own),
        server=server,
        as_published=as_published,
    )
