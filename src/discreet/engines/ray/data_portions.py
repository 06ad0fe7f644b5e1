"""Divide clients' data into portions for Ray: each portion is stored once, and a worker fetches those it needs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from discreet.data.federation import Federation
from discreet.params import Params

Arrays: TypeAlias = dict[str, Any]  # tensors as numpy arrays, which Ray transfers without copying


@dataclass(frozen=True)
class Portion:
    """The examples of some clients.

    Attributes:
        clients: The clients' numbers.
        inputs: Inputs of all their examples, each once.
        targets: Targets of all their examples.
        places: Rows of `inputs` for each client in turn.
    """

    clients: tuple[int, ...]
    inputs: Any
    targets: Any
    places: Any


def split_clients(federation: Federation, count: int) -> list[tuple[int, ...]]:
    """Divide the clients into up to `count` groups of similar size, in the order of blocks: by size, then by number."""
    sizes = federation.sizes
    ordered = sorted(range(len(sizes)), key=lambda client: (sizes[client], client))
    before, every = 0, sum(sizes)
    groups: list[list[int]] = [[] for _ in range(count)]
    for client in ordered:
        groups[min(count - 1, count * (2 * before + sizes[client]) // (2 * every))].append(client)
        before += sizes[client]
    return [tuple(clients) for clients in groups if clients]


def extract_portion(federation: Federation, clients: tuple[int, ...]) -> Portion:
    """Copy the data of these clients. An example that several of them share is copied once."""
    ranges = [torch.arange(start, start + size) for start, size in _example_ranges(federation, clients)]
    listed = torch.cat(ranges) if federation.order is None else federation.order.cpu()[torch.cat(ranges)]
    rows, places = torch.unique(listed, return_inverse=True)
    rows = rows.to(federation.inputs.device)
    return Portion(clients, to_array(federation.inputs[rows]), to_array(federation.targets[rows]), to_array(places))


def without_data(like: Federation) -> Federation:
    """Return a federation of the same clients without any data."""
    nowhere = torch.zeros(sum(like.sizes), dtype=torch.int64)
    inputs, targets = like.inputs[:0].clone(), like.targets[:0].clone()  # pickling a view would include all data
    return replace(like, inputs=inputs, targets=targets, order=nowhere)


def with_portions(federation: Federation, portions: Iterable[Portion]) -> Federation:
    """Return the federation with the data of these portions added."""
    assert federation.order is not None
    device, order = federation.inputs.device, federation.order.clone()
    inputs, targets, held = [federation.inputs], [federation.targets], len(federation.inputs)
    for portion in portions:
        places = torch.tensor(portion.places) + held
        first = 0
        for start, size in _example_ranges(federation, portion.clients):
            order[start : start + size] = places[first : first + size]
            first += size
        inputs.append(torch.tensor(portion.inputs, device=device))
        targets.append(torch.tensor(portion.targets, device=device))
        held += len(portion.inputs)
    return replace(federation, inputs=torch.cat(inputs), targets=torch.cat(targets), order=order)


def _example_ranges(federation: Federation, clients: Iterable[int]) -> Iterator[tuple[int, int]]:
    return ((federation.starts[client], federation.sizes[client]) for client in clients)


def to_array(value: Tensor) -> Any:
    """Convert a tensor to a contiguous numpy array."""
    return np.ascontiguousarray(value.detach().cpu().numpy()).reshape(tuple(value.shape))


def to_arrays(params: Params) -> Arrays:
    """Convert tensors to numpy arrays."""
    return {name: to_array(value) for name, value in params.items()}


def to_tensors(arrays: Arrays, device: torch.device) -> Params:
    """Copy arrays to tensors, since arrays from Ray are read-only."""
    return {name: torch.tensor(value, device=device) for name, value in arrays.items()}
