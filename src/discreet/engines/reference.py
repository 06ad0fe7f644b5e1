"""The slow engine: one client after the other, written like the papers' pseudocode."""

from dataclasses import dataclass

from discreet.algorithms.broadcast import Broadcast
from discreet.engines.engine import CohortSum, Simulation


@dataclass(frozen=True)
class ReferenceEngine:
    """for each client in the cohort: update ← train(model, its data); sum ← sum + update"""

    is_remote = False
    block_size = 1
    simulation: Simulation

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        steps = (([client], self.simulation.step(broadcast, [client])) for client in cohort)
        algorithm = self.simulation.algorithm
        return CohortSum.from_blocks(steps, broadcast, algorithm.mechanism, algorithm.aggregation)
