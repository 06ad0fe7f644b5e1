"""Numbers that may differ by client: where a part has a list of them, row k belongs to client k."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from discreet.algorithms.population import Population
from discreet.errors import InvalidInput, Unsupported
from discreet.params import Params, scale, scale_rows

CLIENT_FIELDS = (
    "sampling_rate",
    "clip_norm",
    "noise_multiplier",
)  # what a client may have of its own, in whatever part
T = TypeVar("T")


def client_fields(part: Any) -> tuple[str, ...]:
    """The fields of this part in which clients differ."""
    return tuple(name for name in CLIENT_FIELDS if isinstance(getattr(part, name, None), tuple))


def check_client_values(part: Any, population: Population) -> None:
    """Each list must name one number for every client."""
    for name in client_fields(part):
        if len(named := getattr(part, name)) != population.clients:
            raise InvalidInput(
                f"{name} must name one number for each of {population.clients} clients, and got {len(named)}.",
                fix="Give as many as there are clients, or one for all.",
            )


def for_client(part: T, client: int) -> T:
    """The part as it is for this client, with single numbers."""
    names = client_fields(part)
    own = {name: getattr(part, name)[client] for name in names}
    return replace(part, **own) if names else part  # type: ignore[type-var]


def worst_case(part: T) -> T:
    """The part with the numbers that reveal most: whoever pays for these has paid for every client."""
    most = {"sampling_rate": max, "clip_norm": max, "noise_multiplier": min}
    names = client_fields(part)
    return replace(part, **{name: most[name](getattr(part, name)) for name in names}) if names else part  # type: ignore[type-var]


def largest(number: float | tuple[float, ...]) -> float:
    return max(number) if isinstance(number, tuple) else number


def require_single(number: float | tuple[float, ...]) -> float:
    """For noise that is added once to a sum of all."""
    if isinstance(number, tuple):
        raise single_noise_error()
    return number


def single_noise_error() -> Unsupported:
    return Unsupported(
        "Clients differ in what they are promised, and one noise on the sum serves all of them.",
        fix="Promise one epsilon to all, or let each client add its own noise (pfl, fl_sgd_gaussian, ldp_fedavg).",
    )


def repeat_value(number: float | tuple[float, ...], clients: int) -> tuple[float, ...]:
    return number if isinstance(number, tuple) else (number,) * clients


def client_rows(number: float | tuple[float, ...], clients: Sequence[int], device: torch.device) -> float | Tensor:
    """The number, where one holds for all; else one for each of these clients, in doubles."""
    if not isinstance(number, tuple):
        return number
    return torch.tensor([number[client] for client in clients], dtype=torch.float64, device=device)


def scale_by(block: Params, factor: float | Tensor) -> Params:
    """By one number for all, or each client's row by its own."""
    return scale_rows(factor, block) if isinstance(factor, Tensor) else scale(block, factor)
