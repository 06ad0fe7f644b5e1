"""The cohort's sum over a Ray cluster: the embedded engine's blocks, each played once that counts."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.uploads import Uploads
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import CohortSum, Simulation
from discreet.engines.ray.work_split import WorkSplit
from discreet.engines.ray.worker import BroadcastArrays, ParcelSum
from discreet.errors import DiscreetError

MAX_PARCELS = 256  # that come back in a round at most: with more blocks than that, a worker adds up some in a row
BLOCKS_PER_WORKER = 4  # a worker, where they differ in cost: whoever is done early takes one more
MAX_LOSSES = 3  # workers that a parcel may take with it before it is to blame


class Workers(Protocol):
    """Workers by number, and calls that they answer."""

    @property
    def size(self) -> int: ...

    def idle_workers(self) -> list[int]:
        """Who is ready and plays nothing."""

    def put_broadcast(self, told: BroadcastArrays) -> Any:
        """The broadcast, put where every worker finds it."""

    def run_parcel(self, worker: int, told: Any, parcel: int, clients: list[int]) -> None: ...

    def answer(self) -> "ParcelResult | None":
        """Of whoever is first; None where that was a worker who has only got ready."""

    def replace(self, worker: int) -> None:
        """Start another one in place of a worker that was lost."""

    def end(self) -> Any: ...


@dataclass(frozen=True)
class ParcelResult:
    """A parcel's sum; None where the worker was lost."""

    worker: int
    parcel: int
    sum: ParcelSum | None


@dataclass(frozen=True, eq=False)
class RayEngine:
    """Same blocks as `embedded` with this block size, same streams, summed in the same order: the same bits.

    Beyond SUMS blocks the sum is made in stretches, which are the same for any number of workers: it then differs from
    embedded's by the rounding of one addition in another order, and from its own repetition by nothing.
    """

    is_remote = False
    embedded: EmbeddedEngine
    workers: Workers

    @property
    def population(self) -> Population:
        return self.embedded.population

    @property
    def simulation(self) -> Simulation:
        return self.embedded.simulation

    @property
    def block_size(self) -> int:
        return self.embedded.block_size

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        try:
            return CohortSum.from_blocks(
                self._steps(broadcast, cohort), broadcast, self.embedded.simulation.algorithm.mechanism
            )
        except BaseException:
            self.workers.end()  # workers play on otherwise, for nobody
            raise

    def _steps(self, broadcast: Broadcast, cohort: list[int]) -> Iterator[tuple[list[int], Uploads]]:
        """Parcels in their order, whoever played them, and however often it took until a sum came back."""
        sizes, device = self.embedded.simulation.federation.sizes, self.embedded.simulation.federation.inputs.device
        parcels = group_blocks(list(self.embedded.blocks(cohort)))
        shares = WorkSplit([sum(sizes[client] for client in parcel) for parcel in parcels], self.workers.size)
        told = self.workers.put_broadcast(BroadcastArrays.of(broadcast)) if parcels else None
        done: dict[int, ParcelSum] = {}
        losses: Counter[int] = Counter()
        for at, parcel in enumerate(parcels):
            while at not in done:
                for worker in self.workers.idle_workers():
                    taken = shares.take(worker)
                    if taken is not None:
                        self.workers.run_parcel(worker, told, taken, parcels[taken])
                answer = self.workers.answer()
                if answer is None:
                    continue
                if answer.sum is not None:
                    done[answer.parcel] = answer.sum
                    continue
                losses[answer.parcel] += 1
                if losses[answer.parcel] == MAX_LOSSES:
                    raise _lost_workers_error(parcels[answer.parcel])
                shares.return_parcel(answer.worker, answer.parcel)
                self.workers.replace(answer.worker)
            yield parcel, done.pop(at).sent(device)


def group_blocks(blocks: list[list[int]]) -> list[list[int]]:
    """Blocks in a row together, as few as make SUMS parcels at most."""
    together = max(1, -(-len(blocks) // MAX_PARCELS))
    rows = [blocks[first : first + together] for first in range(0, len(blocks), together)]
    return [[client for block in row for client in block] for row in rows]


def worker_block_size(fitting: int, algorithm: Algorithm, population: Population, workers: int) -> int:
    """A block size that gives every worker something to do, and is no more than fits into its memory."""
    fewest, most = algorithm.sampling.cohort_bounds(population)
    alike = fewest == most and len(set(population.examples)) == 1
    expected = algorithm.sampling.expected_cohort(population)
    return max(1, min(fitting, math.ceil(expected / (workers if alike else BLOCKS_PER_WORKER * workers))))


def _lost_workers_error(clients: list[int]) -> DiscreetError:
    return DiscreetError(
        f"{MAX_LOSSES} workers were lost one after the other while they played the {len(clients)} clients from "
        f"{clients[0]} on.",
        fix="Give a worker less to hold with a smaller memory_gb, or look into Ray's logs; then go on with --resume.",
    )
