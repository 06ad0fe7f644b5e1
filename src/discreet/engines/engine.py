"""The contract of an engine: gather the cohort's sum, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch

from discreet.algorithms import Algorithm
from discreet.algorithms.algorithm import Sent
from discreet.broadcast import Broadcast
from discreet.federation import Federation
from discreet.mechanisms import Mechanism
from discreet.params import Params, add, total, zeros_like
from discreet.population import Population
from discreet.randomness import RunKey, SimulatedRows
from discreet.training import Loss


@dataclass(frozen=True)
class CohortSum:
    """The sum over the cohort, who contributed, and diagnostics that no guarantee covers."""

    total: Params
    contributors: tuple[int, ...]
    norms: torch.Tensor
    kept: torch.Tensor  # of each update, the share that the clip left: min(1, clip/norm)

    @classmethod
    def of(cls, blocks: Iterable[tuple[list[int], Sent]], broadcast: Broadcast, mechanism: Mechanism) -> "CohortSum":
        """The blocks summed up as they come, and of their norms which were above the clip."""
        summed: Params | None = None
        clients: list[int] = []
        found = []
        for block, sent in blocks:
            own = total(sent.rows)
            summed = own if summed is None else add(summed, own)
            clients += block
            found.append(sent.norms)
        norms = torch.cat(found) if found else torch.zeros(0)
        clip = mechanism.clip(broadcast)
        kept = torch.ones_like(norms) if clip is None else (clip / norms).clamp(max=1).to(norms.device)
        return cls(summed or zeros_like(broadcast.params), tuple(clients), norms, kept)

    @property
    def clipped(self) -> float:
        """The share of clients that were clipped; asked for late, since the answer waits for the device."""
        return float((self.kept < 1).double().mean()) if len(self.kept) else 0.0


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
