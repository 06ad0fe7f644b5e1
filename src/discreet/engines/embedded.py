"""The fast twin: blocks of clients stacked through torch.func.vmap, on CPU or GPU."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from discreet.broadcast import Broadcast
from discreet.engines.engine import CohortSum, Simulation
from discreet.params import add, count, total, zeros_like
from discreet.population import Population

HOST_MEMORY = 3 * 2**29  # 1.5 GiB


@dataclass(frozen=True)
class EmbeddedEngine:
    """All clients of a block at once; as many as fit into `memory` bytes.

    By default that is half of what is free, and on a host no more than HOST_MEMORY: its caches gain nothing from more.
    """

    simulation: Simulation
    memory: int | None = None
    largest_block: int = 4096

    @property
    def population(self) -> Population:
        return self.simulation.population

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        given, algorithm = self.simulation, self.simulation.algorithm
        summed, found, order = zeros_like(broadcast.params), [], []
        for block in self._blocks(broadcast, cohort):
            data, weights, rows = given.federation.block(block), given.weights(block), given.rows(broadcast, block)
            sent = algorithm.client_step(given.loss, broadcast, data, weights, rows)
            summed = add(summed, total(sent.rows))
            found.append(sent.norms)
            order += block
        return CohortSum.of(summed, order, found, algorithm.mechanism)

    def _blocks(self, broadcast: Broadcast, cohort: list[int]) -> Iterator[list[int]]:
        """Clients of like size together, so that one large client doesn't pad all others."""
        size = self.block_size(broadcast)
        ordered = sorted(cohort, key=lambda client: (self.simulation.federation.sizes[client], client))
        for first in range(0, len(ordered), size):
            yield ordered[first : first + size]

    def block_size(self, broadcast: Broadcast) -> int:
        """How many clients fit: each needs some copies of the model and its batch's activations."""
        values = list(broadcast.params.values())
        width = max((value.element_size() for value in values), default=4)
        one = count(broadcast.params) * width * self.simulation.algorithm.trainer.copies(self.population)
        budget = self.memory if self.memory is not None else _free(self.simulation.federation.inputs.device) // 2
        return max(1, min(self.largest_block, int(budget / max(one, 1))))


def _free(device: torch.device) -> int:
    """Bytes that are free: on a GPU what it reports, on a host what the kernel says is available, within reason."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # not Linux
        return 2 * HOST_MEMORY
    available = next(
        (int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 2 * HOST_MEMORY
    )
    return min(available, 2 * HOST_MEMORY)
