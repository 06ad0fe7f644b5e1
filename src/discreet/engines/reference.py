"""The slow twin: one client after the other, as the papers' pseudocode reads."""

from dataclasses import dataclass

from discreet.broadcast import Broadcast
from discreet.engines.engine import CohortSum, Simulation
from discreet.params import add, total, zeros_like
from discreet.population import Population


@dataclass(frozen=True)
class ReferenceEngine:
    """for each client in the cohort: update ← train(model, its data); sum ← sum + update"""

    simulation: Simulation

    @property
    def population(self) -> Population:
        return self.simulation.population

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        summed, found = zeros_like(broadcast.params), []
        for client in cohort:
            sent = self.simulation.step(broadcast, [client])
            summed = add(summed, total(sent.rows))
            found.append(sent.norms)
        return CohortSum.of(summed, cohort, found, self.simulation.algorithm.mechanism)
