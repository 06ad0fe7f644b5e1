"""What a worker does: hold its clients' data, play parcels of them as `embedded` does, give back one sum for each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.uploads import Uploads
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.engines.ray.data_portions import Arrays, Portion, to_array, to_arrays, to_tensors, with_portions
from discreet.params import Params, add, sum_clients


class BroadcastArrays(NamedTuple):
    """A broadcast on its way: the lattice follows from it, for whoever holds the algorithm."""

    round: int
    params: Arrays
    announced: Arrays

    @classmethod
    def of(cls, broadcast: Broadcast) -> "BroadcastArrays":
        return cls(broadcast.round, to_arrays(broadcast.params), to_arrays(broadcast.announcement))


class ParcelSum(NamedTuple):
    """What a parcel of clients sent, added up in the order of its blocks; the norms are one for each client."""

    rows: Arrays
    norms: Any
    clean: Arrays | None

    @classmethod
    def of(cls, blocks: Iterable[tuple[list[int], Uploads]]) -> "ParcelSum":
        rows: Params | None = None
        clean: Params | None = None
        norms = []
        for _, sent in blocks:
            rows = _add_rows(rows, sent.rows)
            clean = clean if sent.clean is None else _add_rows(clean, sent.clean)
            norms.append(sent.norms)
        assert rows is not None  # a parcel has a block
        return cls(to_arrays(rows), to_array(torch.cat(norms)), None if clean is None else to_arrays(clean))

    def sent(self, device: torch.device) -> Uploads:
        """As if one client had sent it all: a block whose sum is this one, bit for bit."""
        clean = None if self.clean is None else _one_row(to_tensors(self.clean, device))
        return Uploads(_one_row(to_tensors(self.rows, device)), torch.tensor(self.norms, device=device), clean)


def _add_rows(summed: Params | None, rows: Params) -> Params:
    return sum_clients(rows) if summed is None else add(summed, sum_clients(rows))


def _one_row(params: Params) -> Params:
    return {name: value[None] for name, value in params.items()}


@dataclass
class Worker:
    """Holds the data of the portions that it has played clients of; `fetch` brings one more.

    `embedded` comes with every client's size and nobody's data, and `portion_of` says where each client's lies.
    """

    embedded: EmbeddedEngine
    portion_of: Any
    fetch: Callable[[int], Portion]

    def __post_init__(self) -> None:
        self.held: set[int] = set()

    def run_parcel(self, told: BroadcastArrays, clients: list[int]) -> ParcelSum:
        self._fetch_data(clients)
        simulation = self.embedded.simulation
        device = simulation.federation.inputs.device
        params, announced = to_tensors(told.params, device), to_tensors(told.announced, device)
        broadcast = simulation.algorithm.rebuild_broadcast(told.round, params, announced)
        return ParcelSum.of(self.embedded.client_steps(broadcast, clients))

    def _fetch_data(self, clients: list[int]) -> None:
        missing = sorted({int(self.portion_of[client]) for client in clients} - self.held)
        if missing:
            simulation: Simulation = self.embedded.simulation
            federation = with_portions(simulation.federation, [self.fetch(each) for each in missing])
            self.embedded = replace(self.embedded, simulation=replace(simulation, federation=federation))
            self.held |= set(missing)
