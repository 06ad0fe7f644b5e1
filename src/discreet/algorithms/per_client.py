"""Numbers that may differ by client: where a part has a list of them, row k belongs to client k."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from discreet.algorithms.population import Population
from discreet.errors import InvalidInput, Unsupported
from discreet.params import Params, per_client, scale

OWN = ("sampling_rate", "clip_norm", "noise_multiplier")  # what a client may have of its own, in whatever part
T = TypeVar("T")


def differing(part: Any) -> tuple[str, ...]:
    """The fields of this part in which clients differ."""
    return tuple(name for name in OWN if isinstance(getattr(part, name, None), tuple))


def checked(part: Any, population: Population) -> None:
    """Each list must name one number for every client."""
    for name in differing(part):
        if len(named := getattr(part, name)) != population.clients:
            raise InvalidInput(
                f"{name} must name one number for each of {population.clients} clients, and got {len(named)}.",
                fix="Give as many as there are clients, or one for all.",
            )


def as_for(part: T, client: int) -> T:
    """The part as it is for this client, with single numbers."""
    names = differing(part)
    own = {name: getattr(part, name)[client] for name in names}
    return replace(part, **own) if names else part  # type: ignore[type-var]


def worst(part: T) -> T:
    """The part with the numbers that reveal most: whoever pays for these has paid for every client."""
    most = {"sampling_rate": max, "clip_norm": max, "noise_multiplier": min}
    names = differing(part)
    return replace(part, **{name: most[name](getattr(part, name)) for name in names}) if names else part  # type: ignore[type-var]


def most(number: float | tuple[float, ...]) -> float:
    return max(number) if isinstance(number, tuple) else number


def single(number: float | tuple[float, ...]) -> float:
    """For noise that is added once to a sum of all."""
    if isinstance(number, tuple):
        raise one_noise_for_all()
    return number


def one_noise_for_all() -> Unsupported:
    return Unsupported(
        "Clients differ in what they are promised, and one noise on the sum serves all of them.",
        fix="Promise one epsilon to all, or let each client add its own noise (pfl, fl_sgd_gaussian, ldp_fedavg).",
    )


def listed(number: float | tuple[float, ...], clients: int) -> tuple[float, ...]:
    return number if isinstance(number, tuple) else (number,) * clients


def rows(number: float | tuple[float, ...], clients: Sequence[int], device: torch.device) -> float | Tensor:
    """The number, where one holds for all; else one for each of these clients, in doubles."""
    if not isinstance(number, tuple):
        return number
    return torch.tensor([number[client] for client in clients], dtype=torch.float64, device=device)


def scaled(block: Params, factor: float | Tensor) -> Params:
    """By one number for all, or each client's row by its own."""
    return per_client(factor, block) if isinstance(factor, Tensor) else scale(block, factor)
