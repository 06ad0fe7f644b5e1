"""The ray engine: workers on a Ray cluster compute the embedded engine's blocks, and each block counts once."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.uploads import Uploads
from discreet.engines.embedded import EmbeddedVariant
from discreet.engines.engine import CohortSum
from discreet.engines.ray.work_split import WorkSplit
from discreet.engines.ray.worker import BroadcastArrays, ParcelSum
from discreet.errors import DiscreetError

MAX_PARCELS = 256  # in a round: if there are more blocks, a worker sums consecutive ones
BLOCKS_PER_WORKER = 4  # if blocks differ in cost, so that workers that finish early take more
MAX_LOSSES = 3  # workers that may be lost with the same parcel before the run stops


class Workers(Protocol):
    """Numbered workers that compute parcels: groups of clients whose updates are summed."""

    @property
    def size(self) -> int:
        """Number of workers."""

    def idle_workers(self) -> list[int]:
        """Return the workers that are ready and have no parcel."""

    def put_broadcast(self, broadcast: BroadcastArrays) -> Any:
        """Store the broadcast for all workers. Returns a reference for `run_parcel`."""

    def run_parcel(self, worker: int, broadcast: Any, parcel: int, clients: list[int]) -> None:
        """Let a worker compute the sum of a parcel of clients. Does not wait."""

    def answer(self) -> "ParcelResult | None":
        """Wait for the next result. None if a worker has only become ready."""

    def replace(self, worker: int) -> None:
        """Start another worker in place of one that was lost."""

    def end(self) -> Any:
        """End all workers."""


@dataclass(frozen=True)
class ParcelResult:
    """The sum of a parcel, None if its worker was lost."""

    worker: int
    parcel: int
    sum: ParcelSum | None


@dataclass(frozen=True, eq=False)
class RayEngine(EmbeddedVariant):
    """The embedded engine's computation on many workers.

    Guarantee: the result has the same bits as `embedded` with this block size, for any number of workers: same blocks,
    same streams, same order of summation. With more than MAX_PARCELS blocks, consecutive blocks are summed first. The
    result then differs from embedded's by rounding, and still not between repetitions.
    """

    workers: Workers

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        algorithm, steps = self.simulation.algorithm, self._steps(broadcast, cohort)
        try:
            return CohortSum.from_blocks(steps, broadcast, algorithm.mechanism, algorithm.aggregation)
        except BaseException:
            self.workers.end()  # otherwise workers would go on
            raise

    def _steps(self, broadcast: Broadcast, cohort: list[int]) -> Iterator[tuple[list[int], Uploads]]:
        """Yield the parcels' sums in order, whichever worker computed them. Repeat a parcel whose worker was lost."""
        sizes, device = self.simulation.federation.sizes, self.simulation.federation.inputs.device
        parcels = group_blocks(list(self.embedded.blocks(cohort)))
        shares = WorkSplit([sum(sizes[client] for client in parcel) for parcel in parcels], self.workers.size)
        reference = self.workers.put_broadcast(BroadcastArrays.from_broadcast(broadcast)) if parcels else None
        done: dict[int, ParcelSum] = {}
        losses: Counter[int] = Counter()
        for at, parcel in enumerate(parcels):
            while at not in done:
                for worker in self.workers.idle_workers():
                    taken = shares.take(worker)
                    if taken is not None:
                        self.workers.run_parcel(worker, reference, taken, parcels[taken])
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
            yield parcel, done.pop(at).to_block(device)


def group_blocks(blocks: list[list[int]]) -> list[list[int]]:
    """Join consecutive blocks into at most MAX_PARCELS parcels."""
    together = max(1, -(-len(blocks) // MAX_PARCELS))
    rows = [blocks[first : first + together] for first in range(0, len(blocks), together)]
    return [[client for block in row for client in block] for row in rows]


def worker_block_size(fitting: int, algorithm: Algorithm, population: Population, workers: int) -> int:
    """Choose a block size that keeps every worker busy and fits into its memory.

    Args:
        fitting: The largest block that fits into a worker's memory.
        algorithm: Its sampling gives the size of a cohort.
        population: The clients' sizes.
        workers: Number of workers.
    """
    fewest, most = algorithm.sampling.cohort_bounds(population)
    alike = fewest == most and len(set(population.examples)) == 1
    expected = algorithm.sampling.expected_cohort(population)
    return max(1, min(fitting, math.ceil(expected / (workers if alike else BLOCKS_PER_WORKER * workers))))


def _lost_workers_error(clients: list[int]) -> DiscreetError:
    return DiscreetError(
        f"{MAX_LOSSES} workers were lost one after the other while they computed the {len(clients)} clients from "
        f"{clients[0]} on.",
        fix="Use a smaller memory_gb, so that a worker needs less memory, or look into Ray's logs; then continue with "
        "--resume.",
    )
