"""The cohort's sum over a Ray cluster: the embedded engine's blocks, each played once that counts."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.algorithms.algorithm import Algorithm, Uploads
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import CohortSum
from discreet.engines.ray.work_split import Shares
from discreet.engines.ray.worker import Sum, Told
from discreet.errors import DiscreetError

SUMS = 256  # that come back in a round at most: with more blocks than that, a worker adds up some in a row
BLOCKS = 4  # a worker, where they differ in cost: whoever is done early takes one more
LOSSES = 3  # workers that a parcel may take with it before it is to blame


class Crew(Protocol):
    """Workers by number, and calls that they answer."""

    @property
    def size(self) -> int: ...

    def idle(self) -> list[int]:
        """Who is ready and plays nothing."""

    def told(self, told: Told) -> Any:
        """The broadcast, put where every worker finds it."""

    def play(self, worker: int, told: Any, parcel: int, clients: list[int]) -> None: ...

    def answer(self) -> "Answer | None":
        """Of whoever is first; None where that was a worker who has only got ready."""

    def replace(self, worker: int) -> None:
        """Start another one in place of a worker that was lost."""

    def end(self) -> Any: ...


@dataclass(frozen=True)
class Answer:
    """A parcel's sum; None where the worker was lost."""

    worker: int
    parcel: int
    sum: Sum | None


@dataclass(frozen=True, eq=False)
class RayEngine:
    """Same blocks as `embedded` with this block size, same streams, summed in the same order: the same bits.

    Beyond SUMS blocks the sum is made in stretches, which are the same for any number of workers: it then differs from
    embedded's by the rounding of one addition in another order, and from its own repetition by nothing.
    """

    embedded: EmbeddedEngine
    crew: Crew

    @property
    def population(self) -> Population:
        return self.embedded.population

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        try:
            return CohortSum.from_blocks(
                self._steps(broadcast, cohort), broadcast, self.embedded.simulation.algorithm.mechanism
            )
        except BaseException:
            self.crew.end()  # workers play on otherwise, for nobody
            raise

    def _steps(self, broadcast: Broadcast, cohort: list[int]) -> Iterator[tuple[list[int], Uploads]]:
        """Parcels in their order, whoever played them, and however often it took until a sum came back."""
        sizes, device = self.embedded.simulation.federation.sizes, self.embedded.simulation.federation.inputs.device
        parcels = parcelled(list(self.embedded.blocks(cohort)))
        shares = Shares([sum(sizes[client] for client in parcel) for parcel in parcels], self.crew.size)
        told = self.crew.told(Told.of(broadcast)) if parcels else None
        done: dict[int, Sum] = {}
        losses: Counter[int] = Counter()
        for at, parcel in enumerate(parcels):
            while at not in done:
                for worker in self.crew.idle():
                    taken = shares.take(worker)
                    if taken is not None:
                        self.crew.play(worker, told, taken, parcels[taken])
                answer = self.crew.answer()
                if answer is None:
                    continue
                if answer.sum is not None:
                    done[answer.parcel] = answer.sum
                    continue
                losses[answer.parcel] += 1
                if losses[answer.parcel] == LOSSES:
                    raise _deadly(parcels[answer.parcel])
                shares.lose(answer.worker, answer.parcel)
                self.crew.replace(answer.worker)
            yield parcel, done.pop(at).sent(device)


def parcelled(blocks: list[list[int]]) -> list[list[int]]:
    """Blocks in a row together, as few as make SUMS parcels at most."""
    together = max(1, -(-len(blocks) // SUMS))
    rows = [blocks[first : first + together] for first in range(0, len(blocks), together)]
    return [[client for block in row for client in block] for row in rows]


def shared_block(fitting: int, algorithm: Algorithm, population: Population, workers: int) -> int:
    """A block size that gives every worker something to do, and is no more than fits into its memory."""
    fewest, most = algorithm.sampling.cohort_bounds(population)
    alike = fewest == most and len(set(population.examples)) == 1
    expected = algorithm.sampling.expected_cohort(population)
    return max(1, min(fitting, math.ceil(expected / (workers if alike else BLOCKS * workers))))


def _deadly(clients: list[int]) -> DiscreetError:
    return DiscreetError(
        f"{LOSSES} workers were lost one after the other while they played the {len(clients)} clients from "
        f"{clients[0]} on.",
        fix="Give a worker less to hold with a smaller memory_gb, or look into Ray's logs; then go on with --resume.",
    )
