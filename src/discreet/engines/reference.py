"""The slow twin: one client after the other, as the papers' pseudocode reads."""

from dataclasses import dataclass

import torch

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
            data, weight, rows = (
                given.federation.block([client]),
                given.weights([client]),
                given.rows(broadcast, [client]),
            )
            sent = algorithm.client_step(given.loss, broadcast, data, weight, rows)
            summed = add(summed, total(sent.rows))
            found.append(sent.norms)
        norms = torch.cat(found) if found else torch.zeros(0)
        return CohortSum(summed, tuple(cohort), norms, _share(algorithm.mechanism.clipped(norms)))


def _share(flags: torch.Tensor) -> float:
    return float(flags.double().mean()) if flags.numel() else 0.0
