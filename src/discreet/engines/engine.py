"""The contract of an engine: gather the cohort's sum, and nothing else."""

from dataclasses import dataclass
from typing import Protocol

import torch

from discreet.algorithms import Algorithm
from discreet.algorithms.algorithm import Sent
from discreet.broadcast import Broadcast
from discreet.federation import Federation
from discreet.mechanisms import Mechanism
from discreet.params import Params
from discreet.population import Population
from discreet.randomness import RunKey, SimulatedRows
from discreet.training import Loss


@dataclass(frozen=True)
class CohortSum:
    """The sum over the cohort, who contributed, and diagnostics that no guarantee covers."""

    total: Params
    contributors: tuple[int, ...]
    norms: torch.Tensor
    flags: torch.Tensor

    @classmethod
    def of(cls, total: Params, clients: list[int], norms: list[torch.Tensor], mechanism: Mechanism) -> "CohortSum":
        """The sum, and of the norms of each block which were above the clip."""
        found = torch.cat(norms) if norms else torch.zeros(0)
        return cls(total, tuple(clients), found, mechanism.clipped(found))

    @property
    def clipped(self) -> float:
        """The share of clients that were clipped; asked for late, since the answer waits for the device."""
        return float(self.flags.double().mean()) if len(self.flags) else 0.0


class Engine(Protocol):
    @property
    def population(self) -> Population: ...

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum: ...


@dataclass(frozen=True)
class Simulation:
    """All that a simulating engine is built from: it needs no more to play every client."""

    algorithm: Algorithm
    federation: Federation
    loss: Loss
    key: RunKey

    @property
    def population(self) -> Population:
        return self.federation.population

    def step(self, broadcast: Broadcast, clients: list[int]) -> Sent:
        """What a block of clients sends for this broadcast."""
        rows, data = self.rows(broadcast, clients), self.federation.block(clients)
        with rows.drawing():
            return self.algorithm.client_step(self.loss, broadcast, data, self.weights(clients), rows)

    def rows(self, broadcast: Broadcast, clients: list[int]) -> SimulatedRows:
        """The clients' streams for this broadcast.

        A seeded run leaves the broadcast's digest out: it protects nobody, and two engines that differ in the last
        bit of a sum would otherwise part for good.
        """
        digest = b"" if self.key.seeded else broadcast.fingerprint
        return self.key.rows(broadcast.round, digest, clients, self.federation.inputs.device)

    def weights(self, clients: list[int]) -> torch.Tensor:
        """Each client's examples over the mean client's: both public."""
        mean = sum(self.federation.sizes) / len(self.federation.sizes)
        device = self.federation.inputs.device
        return torch.tensor([self.federation.sizes[i] / mean for i in clients], dtype=torch.float64, device=device)
