"""Arithmetic on dict[str, Tensor]: a model, an update, or anything that is summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from discreet.double_sums import row_norms, sum_rows
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch

Params: TypeAlias = dict[str, Tensor]


class ClientModels(dict[str, "Tensor"]):
    """The models of clients that train in one block and belong to several runs. As a dict, it is the first of them.

    Attributes:
        rows: One row for each client.
    """

    def __init__(self, rows: Params) -> None:
        super().__init__({name: value[0] for name, value in rows.items()})
        self.rows = rows


def map_params(function: Callable[..., Tensor], *params: Params) -> Params:
    """Apply a function name by name; all arguments must have the same names."""
    first, *others = params
    return {name: function(value, *(other[name] for other in others)) for name, value in first.items()}


def add(left: Params, right: Params) -> Params:
    """Return left + right."""
    return map_params(torch.add, left, right)


def subtract(left: Params, right: Params) -> Params:
    """Return left − right."""
    return map_params(torch.sub, left, right)


def scale(params: Params, factor: float | Tensor) -> Params:
    """Multiply by one factor. The precision of the tensors stays."""
    return {name: value * factor for name, value in params.items()}


def zeros_like(params: Params, dtype: torch.dtype | None = None) -> Params:
    """Return zeros of the same shapes, and of the same types if no other one is asked for."""
    return {name: torch.zeros_like(value, dtype=dtype) for name, value in params.items()}


def scale_rows(factors: Tensor, block: Params) -> Params:
    """Multiply each client's row by its own factor."""
    return {name: value * align_axes(factors, value).to(value.dtype) for name, value in block.items()}


def align_axes(factors: Tensor, value: Tensor) -> Tensor:
    """Append axes to `factors` so that it multiplies `value` along its leading axes."""
    return factors.reshape(factors.shape + (1,) * (value.dim() - factors.dim()))


def repeat_for_clients(params: Params, clients: int) -> Params:
    """Return one row for each client, as a view without a copy."""
    if isinstance(params, ClientModels):
        return params.rows
    return {name: value.expand(clients, *value.shape) for name, value in params.items()}


def concatenate(blocks: Sequence[Params]) -> Params:
    """Return the rows of several blocks as one block."""
    return {name: torch.cat([block[name] for block in blocks]) for name in blocks[0]}


def stack_rows(rows: Sequence[Params]) -> Params:
    """Return a block of these rows."""
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def sum_clients(block: Params) -> Params:
    """Sum over clients: real numbers in double precision."""
    return {name: sum_rows(value) for name, value in block.items()}


def round_to_types(values: Params, like: Params) -> Params:
    """Round each tensor to the type of its namesake in `like`, and what has none to the type of the first tensor."""
    first = next(iter(like.values()))
    return {name: value.to(like.get(name, first).dtype) for name, value in values.items()}


def norms(block: Params, leading: int = 1, order: int = 2) -> Tensor:
    """Return the L2 (or L1) norm over all tensors for each index of the leading axes, in double precision."""
    tensor_norms = [row_norms(value.reshape(*value.shape[:leading], -1), order) for value in block.values()]
    together: Tensor = torch.linalg.vector_norm(torch.stack(tensor_norms), order, dim=0)
    return together


def check_form(name: str, after: Params, before: Params) -> None:
    """Refuse tensors that are not of the names, shapes, types and device that they replace.

    Noise is drawn in the type of what it is added to, so a model that changes its type would change the noise.
    """
    if not isinstance(after, dict) or after.keys() != before.keys():
        raise InvalidInput(f"{name} must have the tensors {sorted(before)}, and has other ones.")
    for key, value in after.items():
        old = before[key]
        if type(value) is not torch.Tensor or (value.shape, value.dtype, value.device) != (
            old.shape,
            old.dtype,
            old.device,
        ):
            raise InvalidInput(
                f"{name} must keep its tensor {key!r} of the shape {tuple(old.shape)} in {old.dtype} on {old.device}."
            )


def count_values(params: Params) -> int:
    """Return the number of values in a model."""
    return sum(value.numel() for value in params.values())


def flatten(params: Params, leading: int = 0) -> Tensor:
    """Concatenate all tensors in the order of their sorted names, behind the leading axes that they share."""
    values = (params[name] for name in sorted(params))
    return torch.cat([value.reshape(*value.shape[:leading], -1) for value in values], dim=-1)


def unflatten(vector: Tensor, like: Params) -> Params:
    """Undo `flatten` for tensors of the shapes of `like`, each behind the leading axes of `vector`."""
    names = sorted(like)
    parts = dict(zip(names, torch.split(vector, [like[name].numel() for name in names], dim=-1), strict=True))
    return {name: parts[name].reshape((*vector.shape[:-1], *value.shape)) for name, value in like.items()}
