"""Settings that may differ by client: a field of a part that holds a tuple has one value for each client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from discreet.algorithms.population import Population
from discreet.errors import InvalidInput, Unsupported
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, scale, scale_rows
from discreet.user_part import UserPart

CLIENT_FIELDS = ("sampling_rate", "clip_norm", "noise_multiplier")  # the fields that may differ by client
T = TypeVar("T")


class HasNoise(Protocol):
    """A part with a noise multiplier, which is None until it is computed from the promise."""

    @property
    def noise_multiplier(self) -> float | tuple[float, ...] | None:
        """Noise deviation over the clip norm; a tuple has one for each client."""


NoisyPart = TypeVar("NoisyPart", bound=HasNoise)


def client_fields(part: Any) -> tuple[str, ...]:
    """Return the names of the fields in which clients differ. A user's own part has the same for all."""
    if isinstance(part, UserPart):
        return ()
    return tuple(name for name in CLIENT_FIELDS if isinstance(getattr(part, name, None), tuple))


def check_client_values(part: Any, population: Population) -> None:
    """Refuse a part that has not one value for each client where clients differ."""
    for name in client_fields(part):
        if len(values := getattr(part, name)) != population.clients:
            raise InvalidInput(
                f"{name} must name one number for each of {population.clients} clients, and got {len(values)}.",
                fix="Give as many as there are clients, or one for all.",
            )


def for_client(part: T, client: int) -> T:
    """Return the part with the values of one client."""
    values = {name: getattr(part, name)[client] for name in client_fields(part)}
    return replace(part, **values) if values else part  # type: ignore[type-var]


def worst_case(part: T) -> T:
    """Return the part with the values that reveal most: what covers it covers every client."""
    most = {"sampling_rate": max, "clip_norm": max, "noise_multiplier": min}
    names = client_fields(part)
    return replace(part, **{name: most[name](getattr(part, name)) for name in names}) if names else part  # type: ignore[type-var]


def largest(number: float | tuple[float, ...]) -> float:
    """Return the value, or the largest if clients differ."""
    return max(number) if isinstance(number, tuple) else number


def require_single(number: float | tuple[float, ...]) -> float:
    """Return the value, which must be one for all clients because the noise is added to their sum."""
    if isinstance(number, tuple):
        raise single_noise_error()
    return number


def single_noise_error() -> Unsupported:
    """Return the error for promises that differ by client where one noise serves all."""
    return Unsupported(
        "Clients differ in what they are promised, and one noise on the sum serves all of them.",
        fix="Promise one epsilon to all, or let each client add its own noise (pfl, fl_sgd_gaussian, ldp_fedavg).",
    )


def fill_noise(part: NoisyPart, noise_multiplier: float | tuple[float, ...]) -> NoisyPart:
    """Return the part with this noise multiplier if none is chosen yet."""
    return part if part.noise_multiplier is not None else replace(part, noise_multiplier=noise_multiplier)  # type: ignore[type-var]


def repeat_value(number: float | tuple[float, ...], clients: int) -> tuple[float, ...]:
    """Return one value for each client."""
    return number if isinstance(number, tuple) else (number,) * clients


def client_rows(number: float | tuple[float, ...], clients: Sequence[int], device: torch.device) -> float | Tensor:
    """Return the value if it is one for all; else a tensor of the values of these clients, in double precision."""
    if not isinstance(number, tuple):
        return number
    return torch.tensor([number[client] for client in clients], dtype=torch.float64, device=device)


def scale_by(block: Params, factor: float | Tensor) -> Params:
    """Scale the rows of a block by one factor, or each by its own."""
    return scale_rows(factor, block) if isinstance(factor, torch.Tensor) else scale(block, factor)
