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
        given, algorithm = self.simulation, self.simulation.algorithm
        summed, found = zeros_like(broadcast.params), []
        for client in cohort:
            data, weight = given.federation.block([client]), given.weights([client])
            sent = algorithm.client_step(given.loss, broadcast, data, weight, given.rows(broadcast, [client]))
            summed = add(summed, total(sent.rows))
            found.append(sent.norms)
        return CohortSum.of(summed, cohort, found, algorithm.mechanism)
