"""Change one setting of an algorithm: the local work, the rate at which examples or clients are drawn, the clients."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from discreet.algorithms import per_client
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.sampling import Everyone, Poisson, RoundRobin, Sampling
from discreet.algorithms.training import LocalTrainer
from discreet.errors import InvalidInput

T = TypeVar("T")


def set_local_steps(trainer: LocalTrainer, steps: int) -> LocalTrainer:
    """Return the trainer with another amount of local work in every round, in the unit in which it counts."""
    return _require_change(trainer.with_local_work(steps), "trains")


def set_example_rate(trainer: LocalTrainer, rate: float) -> LocalTrainer:
    """Return the trainer with another share of a client's examples in each step."""
    return _require_change(trainer.with_example_rate(rate), "trains")


def set_client_rate(algorithm: Algorithm, rate: float, clients: int) -> Sampling:
    """Return the way in which clients join, at another rate.

    If all joined before and no longer do, each joins by a secret draw where a server adds the noise; else they take
    turns.
    """
    sampling: Sampling = algorithm.sampling
    if sampling == Everyone() and not math.isclose(rate, 1):
        mechanism = algorithm.mechanism
        is_on_server = mechanism.is_private and not mechanism.is_local and mechanism.integer_shares is None
        sampling = Poisson(rate=rate) if is_on_server else RoundRobin(cohort=1)
    return sampling if sampling == Everyone() else _require_change(sampling.with_rate(rate, clients), "draws clients")


def _require_change(changed: T | None, what: str) -> T:
    """Return the changed part, or refuse a part that the page can't change."""
    if changed is None:
        raise InvalidInput(f"The experiment {what} by code of its own, whose settings the page can't change.")
    return changed


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
