"""The fast engine: blocks of clients stacked through torch.func.vmap, on CPU or GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training.batches import round_up_width
from discreet.algorithms.uploads import Uploads
from discreet.engines.engine import CohortSum, Simulation
from discreet.lazy_torch import torch
from discreet.params import count_values

LARGEST_BLOCK = 4096
HOST_MEMORY = 3 * 2**29  # 1.5 GiB
MEASURED_CLIENTS = 4  # the largest clients, on which the memory is measured


@dataclass(frozen=True)
class EmbeddedEngine:
    """Trains the clients of a block at once. A run keeps its `block_size`, since its last bits depend on it."""

    is_remote = False
    simulation: Simulation
    block_size: int = LARGEST_BLOCK

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        algorithm, steps = self.simulation.algorithm, self.client_steps(broadcast, cohort)
        return CohortSum.from_blocks(steps, broadcast, algorithm.mechanism, algorithm.aggregation)

    def client_steps(self, broadcast: Broadcast, cohort: list[int]) -> Iterator[tuple[list[int], Uploads]]:
        """Yield what each block of clients sends."""
        return ((block, self._step(broadcast, block)) for block in self.blocks(cohort))

    def _step(self, broadcast: Broadcast, block: list[int]) -> Uploads:
        """Train one block. Where cohorts differ in size, recorded and compiled steps need one of a few sizes."""
        fewest, most = self.simulation.algorithm.sampling.cohort_bounds(self.simulation.population)
        is_kept = self.simulation.compile or self.simulation.device.type == "cuda"
        if fewest == most or not is_kept:
            return self.simulation.step(broadcast, block)
        more = max(0, min(round_up_width(len(block)), self.block_size) - len(block))
        return self.simulation.step(broadcast, block + block[-1:] * more).select(slice(len(block)))

    def blocks(self, cohort: list[int]) -> Iterator[list[int]]:
        """Group clients of similar size into blocks, so that one large client doesn't pad all others."""
        members = np.array(cohort, dtype=np.int64)
        ordered = members[np.lexsort((members, self.simulation.federation.size_array[members]))].tolist()
        for first in range(0, len(ordered), self.block_size):
            yield ordered[first : first + self.block_size]


@dataclass(frozen=True, eq=False)
class EmbeddedVariant:
    """An engine that computes the blocks of `embedded`, and adds them up in another way."""

    is_remote = False
    embedded: EmbeddedEngine

    @property
    def simulation(self) -> Simulation:
        return self.embedded.simulation

    @property
    def block_size(self) -> int:
        return self.embedded.block_size


def fitting_block_size(simulation: Simulation, broadcast: Broadcast, memory: int | None = None) -> int:
    """Return the size of blocks that take at most `memory` bytes; by default half of the free memory.

    A CPU gets at most HOST_MEMORY, since its caches gain nothing from more.
    """
    budget = _free_bytes(simulation.device) // 2 if memory is None else memory
    client_bytes = measure_client_bytes if simulation.device.type == "cuda" else estimate_client_bytes
    return max(1, min(LARGEST_BLOCK, int(budget / max(client_bytes(simulation, broadcast), 1))))


def estimate_client_bytes(simulation: Simulation, broadcast: Broadcast) -> float:
    """Estimate the bytes that one client takes on a CPU: copies of the model, compared to which a batch is small."""
    values = list(broadcast.params.values())
    width = max((value.element_size() for value in values), default=4)
    return count_values(broadcast.params) * width * simulation.algorithm.trainer.model_copies(simulation.population)


def measure_client_bytes(simulation: Simulation, broadcast: Broadcast) -> float:
    """Measure the bytes that one client takes on a GPU, in a trial of the largest clients whose result is discarded."""
    trainer = simulation.algorithm.trainer.with_two_steps()
    trial = replace(simulation, algorithm=replace(simulation.algorithm, trainer=trainer), compile=False)
    sizes = simulation.federation.sizes
    largest = sorted(range(len(sizes)), key=lambda client: sizes[client])[-MEASURED_CLIENTS:]
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    trial.step(broadcast, largest)
    return (torch.cuda.max_memory_allocated() - before) / len(largest)


def _free_bytes(device: torch.device) -> int:
    """Return the free bytes of a GPU, or the memory that the kernel calls available, at most twice HOST_MEMORY."""
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
