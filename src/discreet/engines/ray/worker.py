"""A worker of the ray engine: it fetches clients' data and computes the sums of parcels as `embedded` does."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.uploads import Uploads
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import BlockSum, Simulation
from discreet.engines.ray.data_portions import Arrays, Portion, to_array, to_arrays, to_tensors, with_portions
from discreet.params import Params, concatenate


class BroadcastArrays(NamedTuple):
    """A broadcast as numpy arrays. Its lattice follows from the algorithm and is not sent."""

    round: int
    params: Arrays
    announced: Arrays

    @classmethod
    def from_broadcast(cls, broadcast: Broadcast) -> "BroadcastArrays":
        return cls(broadcast.round, to_arrays(broadcast.params), to_arrays(broadcast.announcement))


class ParcelSum(NamedTuple):
    """The sum of a parcel of clients, added in the order of its blocks.

    Attributes:
        rows: The sum of what the clients sent; or one row for each, if the aggregation needs each upload.
        norms: The norm of each client's update.
        clean: The sum of the updates without noise, None if unknown.
    """

    rows: Arrays
    norms: Any
    clean: Arrays | None
    has_each_upload: bool = False

    @classmethod
    def from_blocks(cls, blocks: Iterable[tuple[list[int], Uploads]], *, keep_each_upload: bool = False) -> "ParcelSum":
        """Add the blocks up. If each upload is needed, keep the rows, and add up only what is for diagnostics."""
        kept: list[Params] = []
        if keep_each_upload:
            blocks = list(blocks)
            kept = [sent.rows for _, sent in blocks]
        _, rows, norms, clean = BlockSum.from_blocks(blocks)
        assert rows is not None  # a parcel has at least one block
        arrays = to_arrays(concatenate(kept) if kept else rows)
        return cls(arrays, to_array(norms), None if clean is None else to_arrays(clean), keep_each_upload)

    def to_block(self, device: torch.device) -> Uploads:
        """Convert to a block with one row, whose sum is this sum, bit for bit; or with all rows, if they were kept."""
        clean = None if self.clean is None else _one_row(to_tensors(self.clean, device))
        rows = to_tensors(self.rows, device)
        return Uploads(rows if self.has_each_upload else _one_row(rows), torch.tensor(self.norms, device=device), clean)


def _one_row(params: Params) -> Params:
    return {name: value[None] for name, value in params.items()}


@dataclass
class Worker:
    """Computes parcels, and keeps the portions of data that it has needed so far.

    Attributes:
        embedded: An embedded engine with all clients' sizes and at first nobody's data.
        portion_of: The portion of each client's data.
        fetch: Fetches a portion.
    """

    embedded: EmbeddedEngine
    portion_of: Any
    fetch: Callable[[int], Portion]

    def __post_init__(self) -> None:
        self.held: set[int] = set()

    def run_parcel(self, arrays: BroadcastArrays, clients: list[int]) -> ParcelSum:
        """Compute the sum of these clients' updates."""
        self._fetch_data(clients)
        simulation = self.embedded.simulation
        device = simulation.federation.inputs.device
        params, announced = to_tensors(arrays.params, device), to_tensors(arrays.announced, device)
        broadcast = simulation.algorithm.rebuild_broadcast(arrays.round, params, announced)
        steps = self.embedded.client_steps(broadcast, clients)
        return ParcelSum.from_blocks(steps, keep_each_upload=simulation.algorithm.aggregation.needs_each_upload)

    def _fetch_data(self, clients: list[int]) -> None:
        missing = sorted({int(self.portion_of[client]) for client in clients} - self.held)
        if missing:
            simulation: Simulation = self.embedded.simulation
            federation = with_portions(simulation.federation, [self.fetch(portion) for portion in missing])
            self.embedded = replace(self.embedded, simulation=replace(simulation, federation=federation))
            self.held |= set(missing)
