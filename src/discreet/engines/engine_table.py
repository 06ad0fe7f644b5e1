"""The [engine] table of an experiment: one record for each engine, which checks, describes and builds it.

The training loop asks these records and knows no engine by name. A new engine adds its file, its record here, and its
name in `AnyEngine`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Protocol, TypeAlias

from pydantic import Field

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.engines.embedded import EmbeddedEngine, fitting_block_size
from discreet.engines.engine import MIN_SECURE_CLIENTS, Engine, Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.engines.secure_terms import plan_degree
from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.params import Params
from discreet.part import Count, NonNegative, Positive, part
from discreet.round_clock import NO_CLOCK
from discreet.secure_sums.secagg.degree import Degree


@dataclass(frozen=True)
class EngineSetup:
    """What an engine is built from.

    Attributes:
        simulation: The algorithm with its noise, the data, the loss and the run's key.
        params: The first model; memory is measured with it.
        block_size: The block size of the run that is resumed, since the last bits depend on it. None for a new run.
        remote: The engine that reaches real clients. None outside a deployment.
    """

    simulation: Simulation
    params: Params
    block_size: int | None = None
    remote: Engine | None = None

    def choose_block_size(self, memory: int | None, wanted: int | None = None) -> int:
        """Return the block size of a resumed run, else the wanted one, else the largest that fits into `memory`."""
        if self.block_size is not None:
            return self.block_size
        if wanted is not None:
            return wanted
        algorithm = self.simulation.algorithm
        start = algorithm.broadcast(algorithm.init(self.params), 0, self.simulation.public_update)
        return fitting_block_size(self.simulation, start, memory)


class EngineRecord(Protocol):
    """What every record of an [engine] table answers."""

    @property
    def is_simulated(self) -> bool:
        """Whether this program plays the clients. False if they run on machines of their own."""
        return True

    @property
    def waits_for_others(self) -> bool:
        """Whether other processes or machines train the clients, so that this one waits for them."""
        return not self.is_simulated

    def check(self, algorithm: Algorithm, population: Population) -> None:
        """Refuse an algorithm that this engine can't run for these clients."""
        return

    def check_reachable(self, device: torch.device) -> None:
        """Refuse a run whose other machines can't be reached, before a run directory is made."""
        return

    def mask_degree(self, algorithm: Algorithm, population: Population) -> Degree | None:
        """Return how many neighbours share masks in its secure sums. None if it adds updates up in clear."""
        return None

    def for_moments(self) -> EngineRecord:
        """Return the engine that sums the moments before the first round; by default itself."""
        return self

    def build(self, setup: EngineSetup) -> Engine:
        """Build the engine."""


@part
class Embedded(EngineRecord):
    """Train blocks of clients at once, as many as fit into `memory_gb`; by default half of the free memory.

    `block_size` sets the number of clients in a block instead. The last bits of a sum depend on it.
    """

    kind: Literal["embedded"] = "embedded"
    memory_gb: Positive | None = None
    block_size: Count | None = None

    def build(self, setup: EngineSetup) -> Engine:
        return EmbeddedEngine(setup.simulation, setup.choose_block_size(_bytes(self.memory_gb), self.block_size))


@part
class Reference(EngineRecord):
    """Train one client after the other: slow, and written like the papers' pseudocode."""

    kind: Literal["reference"] = "reference"

    def build(self, setup: EngineSetup) -> Engine:
        return ReferenceEngine(setup.simulation)


@part
class Secure(EngineRecord):
    """Train as `embedded` does, and sum by secure aggregation, with clients that drop out at random.

    `drop_out` is the probability that a client leaves a round before its end. `memory_gb` and `block_size` are those of
    `embedded`.
    """

    kind: Literal["secure"] = "secure"
    memory_gb: Positive | None = None
    block_size: Count | None = None
    drop_out: Annotated[NonNegative, Field(lt=1)] = 0.0

    def check(self, algorithm: Algorithm, population: Population) -> None:
        if not algorithm.aggregation.is_secure:
            raise InvalidInput(
                "A secure sum takes integers, and this algorithm sums real numbers.",
                fix='Use recipe = "ddp_fedavg" with noise = "skellam", or engine = { kind = "embedded" }.',
            )
        fewest = algorithm.sampling.cohort_bounds(population)[0]
        if fewest < MIN_SECURE_CLIENTS:
            raise InvalidInput(
                f"A secure sum needs at least {MIN_SECURE_CLIENTS} clients, and as few as {fewest} may be in a round.",
                fix='Let more clients join, or use engine = { kind = "embedded" }.',
            )
        self.mask_degree(algorithm, population)

    def mask_degree(self, algorithm: Algorithm, population: Population) -> Degree | None:
        return plan_degree(algorithm, population, signed=False)

    def build(self, setup: EngineSetup) -> Engine:
        from discreet.engines.secure import SecureEngine  # imports cryptography, which only this engine needs

        block_size = setup.choose_block_size(_bytes(self.memory_gb), self.block_size)
        embedded = EmbeddedEngine(setup.simulation, block_size)
        return SecureEngine(embedded, self.drop_out)


@part
class Ray(EngineRecord):
    """Train as `embedded` does, with the blocks spread over a Ray cluster, one worker for each CPU or GPU.

    `address` names the cluster: "auto" is the one that runs here, and "local" starts one. The blocks of a worker fit
    into `memory_gb`; by default all workers together take half of the cluster's memory. `block_size` sets the number of
    clients in a block instead, which otherwise also depends on the number of workers: with the same one, clusters of
    any size and `embedded` give the same bits.
    """

    kind: Literal["ray"] = "ray"
    address: str = "auto"
    workers: Count | None = None
    memory_gb: Positive | None = None
    block_size: Count | None = None

    @property
    def waits_for_others(self) -> bool:
        return True

    def check_reachable(self, device: torch.device) -> None:
        from discreet.engines.ray.ray_cluster import Cluster

        Cluster.check(self.address, self.workers, device)

    def for_moments(self) -> EngineRecord:
        """One small sum is not worth a second set of workers, for which there may be no room."""
        return Embedded(memory_gb=self.memory_gb, block_size=self.block_size)

    def build(self, setup: EngineSetup) -> Engine:
        from discreet.engines.ray.ray_cluster import Cluster
        from discreet.engines.ray.ray_engine import RayEngine, worker_block_size
        from discreet.engines.ray.ray_workers import RayWorkers

        simulation = replace(setup.simulation, clock=NO_CLOCK)  # which does not travel to the workers
        cluster = Cluster.join(self.address, self.workers, simulation.device)
        block_size = setup.choose_block_size(_bytes(self.memory_gb) or cluster.memory, self.block_size)
        if setup.block_size is None and self.block_size is None:
            block_size = worker_block_size(block_size, simulation.algorithm, simulation.population, cluster.size)
        embedded = EmbeddedEngine(simulation, block_size)
        return RayEngine(embedded, RayWorkers(cluster, embedded))


@part
class Flower(EngineRecord):
    """Train on real clients over a network, by `discreet deploy`.

    The server waits at most `timeout` seconds for replies, and `patience` seconds for the rest once enough are there.
    A secure session serves up to `session_rounds` rounds of one cohort.
    """

    kind: Literal["flower"] = "flower"
    timeout: Positive = 600.0
    patience: Positive = 30.0
    session_rounds: Count = 10

    @property
    def is_simulated(self) -> bool:
        return False

    def check(self, algorithm: Algorithm, population: Population) -> None:
        if algorithm.aggregation.is_secure and algorithm.sampling.cohort_bounds(population)[0] >= MIN_SECURE_CLIENTS:
            self.mask_degree(algorithm, population)

    def mask_degree(self, algorithm: Algorithm, population: Population) -> Degree | None:
        return plan_degree(algorithm, population, signed=True)

    def build(self, setup: EngineSetup) -> Engine:
        if setup.remote is None:
            raise InvalidInput(
                "This experiment runs on real clients, and none can be reached from here.",
                fix='Run it with: discreet deploy submit; or use engine = { kind = "embedded" }.',
            )
        return setup.remote


AnyEngine: TypeAlias = Annotated[Embedded | Secure | Reference | Ray | Flower, Field(discriminator="kind")]


def _bytes(gigabytes: float | None) -> int | None:
    return None if gigabytes is None else int(gigabytes * 1e9)
