"""Change one setting of an algorithm: the local work, the rate at which examples or clients are drawn, the clients."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from discreet.algorithms import per_client
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.sampling import AnySampling, Everyone, FixedSize, Poisson, RoundRobin
from discreet.algorithms.training import (
    BroadcastGradients,
    ConvexLocal,
    DenoisedRelease,
    DpSgd,
    GradientDescent,
    LocalSgd,
    MinibatchDp,
    Shards,
)
from discreet.errors import InvalidInput

T = TypeVar("T")


def set_local_steps(trainer: Any, steps: int) -> Any:
    """Return the trainer with another amount of local work in every round, in the unit in which it counts."""
    match trainer:
        case Shards():
            return replace(trainer, local=set_local_steps(trainer.local, steps))
        case GradientDescent():
            return replace(trainer, iterations=(steps,))
        case LocalSgd():
            return replace(trainer, epochs=steps) if trainer.steps is None else replace(trainer, steps=steps)
        case ConvexLocal():
            return replace(trainer, steps=max(1, round(steps / trainer.passes)), batch_size=None)
        case DpSgd() | BroadcastGradients() | DenoisedRelease():
            return replace(trainer, steps=(steps,), epochs=None)
        case MinibatchDp():
            return replace(trainer, steps=(steps,))
    raise InvalidInput(OWN_TRAINER)


def set_example_rate(trainer: Any, rate: float) -> Any:
    """Return the trainer with another share of a client's examples in each step."""
    match trainer:
        case DpSgd() | BroadcastGradients() | DenoisedRelease():
            return replace(trainer, sampling_rate=rate, batch_size=None)
        case ConvexLocal() | MinibatchDp():
            return replace(trainer, sampling_rate=rate)
    raise InvalidInput(OWN_TRAINER)


def set_client_rate(algorithm: Algorithm, rate: float, clients: int) -> AnySampling:
    """Return the way in which clients join, at another rate.

    If all joined before and no longer do, each joins by a secret draw where a server adds the noise; else they take
    turns.
    """
    sampling, cohort = algorithm.sampling, max(1, round(rate * clients))
    match sampling:
        case FixedSize() | RoundRobin():
            return replace(sampling, cohort=cohort)
        case Poisson():
            return Poisson(rate=rate)
        case Everyone() if math.isclose(rate, 1):
            return sampling
        case Everyone():
            mechanism = algorithm.mechanism
            is_on_server = mechanism.is_private and not mechanism.is_local and mechanism.integer_shares is None
            return Poisson(rate=rate) if is_on_server else RoundRobin(cohort=cohort)
    raise InvalidInput(OWN_SAMPLING)


def pick_clients(sizes: Sequence[int], count: int) -> list[int]:
    """Return `count` clients, evenly by the order of their sizes; some of them several times if `count` is larger."""
    by_size = sorted(range(len(sizes)), key=lambda client: sizes[client])
    return sorted(by_size[(2 * place + 1) * len(sizes) // (2 * count)] for place in range(count))


def pick_values(value: Any, picked: Sequence[int]) -> Any:
    """Return the values of the picked clients, if each client has its own; else the one value of all."""
    return tuple(value[client] for client in picked) if isinstance(value, tuple) else value


def pick_settings(part: T, picked: Sequence[int]) -> T:
    """Return the part for the picked clients, where clients have settings of their own."""
    own = {name: pick_values(getattr(part, name), picked) for name in per_client.client_fields(part)}
    return replace(part, **own) if own else part  # type: ignore[type-var]


OWN_TRAINER = "The experiment trains by code of its own, whose settings the page can't change."
OWN_SAMPLING = "The experiment draws clients by code of its own, whose rate the page can't change."
