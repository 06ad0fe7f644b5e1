"""Arithmetic on dict[str, Tensor]: a model, an update, or anything that is summed."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

Params: TypeAlias = dict[str, Tensor]


def map_params(function: Callable[..., Tensor], *params: Params) -> Params:
    """The function applied name by name; all must have the same names."""
    first, *others = params
    return {name: function(value, *(other[name] for other in others)) for name, value in first.items()}


def add(left: Params, right: Params) -> Params:
    return map_params(torch.add, left, right)


def subtract(left: Params, right: Params) -> Params:
    return map_params(torch.sub, left, right)


def scale(params: Params, factor: float | Tensor) -> Params:
    """By one number for all, which keeps their precision."""
    return {name: value * factor for name, value in params.items()}


def zeros_like(params: Params) -> Params:
    return map_params(torch.zeros_like, params)


def scale_rows(factors: Tensor, block: Params) -> Params:
    """Each client's row times its own factor."""
    return {name: value * align_axes(factors, value).to(value.dtype) for name, value in block.items()}


def align_axes(factors: Tensor, value: Tensor) -> Tensor:
    """`factors` with as many trailing axes as it takes to multiply `value` along its leading ones."""
    return factors.reshape(factors.shape + (1,) * (value.dim() - factors.dim()))


def repeat_for_clients(params: Params, clients: int) -> Params:
    """One row for each client, without a copy until a row is changed."""
    return {name: value.expand(clients, *value.shape) for name, value in params.items()}


def sum_clients(block: Params) -> Params:
    """The sum over clients."""
    return {name: value.sum(dim=0) for name, value in block.items()}


def norms(block: Params, leading: int = 1, order: int = 2) -> Tensor:
    """The L2 (or L1) norm over all tensors, for each index of the leading axes; in doubles: huge squares fit."""
    each = [
        torch.linalg.vector_norm(value.reshape(*value.shape[:leading], -1), order, dim=-1, dtype=torch.float64)
        for value in block.values()
    ]
    together: Tensor = torch.linalg.vector_norm(torch.stack(each), order, dim=0)
    return together


def count_values(params: Params) -> int:
    """How many numbers one model holds."""
    return sum(value.numel() for value in params.values())


def flatten(params: Params, leading: int = 0) -> Tensor:
    """All tensors end to end, by their sorted names, behind the leading axes that they share."""
    values = (params[name] for name in sorted(params))
    return torch.cat([value.reshape(*value.shape[:leading], -1) for value in values], dim=-1)


def unflatten(vector: Tensor, like: Params) -> Params:
    """What `flat` made of tensors in the shape of `like`, each behind the leading axes of `vector`."""
    names = sorted(like)
    parts = dict(zip(names, torch.split(vector, [like[name].numel() for name in names], dim=-1), strict=True))
    return {name: parts[name].reshape((*vector.shape[:-1], *value.shape)) for name, value in like.items()}
