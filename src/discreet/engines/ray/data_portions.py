"""How clients' data travels: cut into portions of which each is put once, and a worker holds those it needs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from discreet.data.federation import Federation
from discreet.params import Params

Arrays: TypeAlias = dict[str, Any]  # tensors as numpy's arrays: Ray carries those without taking them apart


@dataclass(frozen=True)
class Portion:
    """Some clients' examples: `places` says for each of them in turn where its examples lie in `inputs`."""

    clients: tuple[int, ...]
    inputs: Any
    targets: Any
    places: Any


def split_clients(federation: Federation, count: int) -> list[tuple[int, ...]]:
    """The clients in portions of about as many examples, in the order that blocks have: by size, then by number."""
    sizes = federation.sizes
    ordered = sorted(range(len(sizes)), key=lambda client: (sizes[client], client))
    before, every = 0, sum(sizes)
    found: list[list[int]] = [[] for _ in range(count)]
    for client in ordered:
        found[min(count - 1, count * (2 * before + sizes[client]) // (2 * every))].append(client)
        before += sizes[client]
    return [tuple(clients) for clients in found if clients]


def extract_portion(federation: Federation, clients: tuple[int, ...]) -> Portion:
    """These clients' data; an example that several of them share is in it once."""
    ranges = [torch.arange(start, start + size) for start, size in _example_ranges(federation, clients)]
    listed = torch.cat(ranges) if federation.order is None else federation.order.cpu()[torch.cat(ranges)]
    rows, places = torch.unique(listed, return_inverse=True)
    rows = rows.to(federation.inputs.device)
    return Portion(clients, to_array(federation.inputs[rows]), to_array(federation.targets[rows]), to_array(places))


def without_data(like: Federation) -> Federation:
    """The same clients, none of whose data is here yet."""
    nowhere = torch.zeros(sum(like.sizes), dtype=torch.int64)
    inputs, targets = like.inputs[:0].clone(), like.targets[:0].clone()  # a view would take all data along
    return replace(like, inputs=inputs, targets=targets, order=nowhere)


def with_portions(federation: Federation, portions: Iterable[Portion]) -> Federation:
    """What is held, and these portions beside it."""
    assert federation.order is not None
    device, order = federation.inputs.device, federation.order.clone()
    inputs, targets, held = [federation.inputs], [federation.targets], len(federation.inputs)
    for each in portions:
        places = torch.tensor(each.places) + held
        first = 0
        for start, size in _example_ranges(federation, each.clients):
            order[start : start + size] = places[first : first + size]
            first += size
        inputs.append(torch.tensor(each.inputs, device=device))
        targets.append(torch.tensor(each.targets, device=device))
        held += len(each.inputs)
    return replace(federation, inputs=torch.cat(inputs), targets=torch.cat(targets), order=order)


def _example_ranges(federation: Federation, clients: Iterable[int]) -> Iterator[tuple[int, int]]:
    return ((federation.starts[client], federation.sizes[client]) for client in clients)


def to_array(value: Tensor) -> Any:
    return np.ascontiguousarray(value.detach().cpu().numpy()).reshape(tuple(value.shape))


def to_arrays(params: Params) -> Arrays:
    return {name: to_array(value) for name, value in params.items()}


def to_tensors(found: Arrays, device: torch.device) -> Params:
    """Copies: what Ray hands out may not be written to."""
    return {name: torch.tensor(value, device=device) for name, value in found.items()}
