"""All that the loop needs, ready to run, and what may be asked of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.data.federation import Federation
from discreet.data.tasks.task import Task
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Engine, Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import Flower, Ray, Reference, Secure, Settings
from discreet.experiment.promise import calibrate
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.promise.released_rounds import ReleasedRound
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

CONSTANT = "constant_mse"  # a model that is no better has learned nothing
TRAINING_EXAMPLES = 10_000  # on which a model is tried, at most


@dataclass(frozen=True)
class DeploymentFacts:
    """What a run on real clients knows of its deployment."""

    resume_command: str  # the command that goes on with it
    is_rehearsal: bool  # one machine plays every client
    other_runs: Callable[[], Sequence[str]]  # the deployment's other runs by now, on the same data


@dataclass(frozen=True)
class Job:
    """`algorithm` has all its noise; `data` lies on the device, in the precision that was asked for."""

    rounds: int
    key: RunKey
    task: Task
    data: Federation
    public_data: Federation | None
    test_data: tuple[Tensor, Tensor]
    model: SupervisedModule
    params: Params
    algorithm: Algorithm
    privacy: Privacy | None
    settings: Settings
    resolved_text: str
    source_text: str
    folder: Path | None
    declared: Population | None = None  # of clients who hold their data themselves
    remote: Callable[[], Engine] | None = None  # how they are reached
    deployed: DeploymentFacts | None = None
    isolation_note: str | None = None  # what was verified of a model that is the user's own
    accept_data_ranges: bool = False  # whether whoever trains has accepted ranges that were taken from the data

    @property
    def population(self) -> Population:
        return self.declared or self.data.population

    @property
    def device(self) -> torch.device:
        return self.data.inputs.device

    def engine(self, block_size: int | None) -> tuple[Engine, Simulation, int]:
        """The engine with its block size fixed: bits depend on it, and free memory comes and goes."""
        simulation = Simulation(self.algorithm, self.data, self.model.loss, self.key, self.public_data)
        chosen = self.settings.engine
        if isinstance(chosen, Reference):
            return ReferenceEngine(simulation), simulation, 1
        if isinstance(chosen, Flower):
            if self.remote is None:
                raise InvalidInput(
                    "This experiment runs on real clients, and none can be reached from here.",
                    fix='Run it with: discreet deploy submit; or use engine = { kind = "embedded" }.',
                )
            return self.remote(), replace(simulation, real=True), 1
        memory = None if chosen.memory_gb is None else int(chosen.memory_gb * 1e9)
        if isinstance(chosen, Ray):
            return self._on_ray(chosen, simulation, block_size, memory)
        if block_size is None:
            block_size = self._fitting(simulation, memory)
        embedded = EmbeddedEngine(simulation, block_size)
        if not isinstance(chosen, Secure):
            return embedded, simulation, block_size
        from discreet.engines.secure import SecureEngine  # cryptography, which only this engine needs

        return SecureEngine(embedded, chosen.drop_out), simulation, block_size

    def check_reachable(self) -> None:
        """Whether other machines that it needs are there, asked before a run directory is made."""
        if isinstance(chosen := self.settings.engine, Ray):
            from discreet.engines.ray.ray_workers import Cluster

            Cluster.check(chosen.address, chosen.workers, self.device)

    def _on_ray(
        self, chosen: Ray, simulation: Simulation, block_size: int | None, memory: int | None
    ) -> tuple[Engine, Simulation, int]:
        from discreet.engines.ray.ray_engine import RayEngine, worker_block_size
        from discreet.engines.ray.ray_workers import Cluster, RayWorkers

        cluster = Cluster.join(chosen.address, chosen.workers, self.device)
        if block_size is None:
            fitting = self._fitting(simulation, memory or cluster.memory)
            block_size = worker_block_size(fitting, self.algorithm, self.population, cluster.size)
        embedded = EmbeddedEngine(simulation, block_size)
        return RayEngine(embedded, RayWorkers(cluster, embedded)), simulation, block_size

    def _fitting(self, simulation: Simulation, memory: int | None) -> int:
        start = self.algorithm.broadcast(self.algorithm.init(self.params), 0, simulation.public_update)
        return EmbeddedEngine.with_fitting_blocks(simulation, start, memory).block_size

    def evaluate(self, params: Params) -> dict[str, float]:
        """What the model achieves on the test data; a squared error beside that of a constant."""
        found = self.model.evaluate(params, *self.test_data)
        if "mse" not in found:
            return found
        return {"mse": found.pop("mse"), CONSTANT: self._constant_mse, **found}

    def evaluate_training(self, params: Params) -> dict[str, float]:
        """The same on examples that clients train on: the same few in every round, drawn by the run's key."""
        return self.model.evaluate(params, *self._training)

    @cached_property
    def _training(self) -> tuple[Tensor, Tensor]:
        held = sum(self.data.sizes)
        drawn = torch.randperm(held, generator=self.key.generator(Purpose.TRAINING_EXAMPLES))[:TRAINING_EXAMPLES]
        return self.data.examples(drawn.sort().values)

    @cached_property
    def _constant_mse(self) -> float:
        """The error of whoever predicts the mean of the clients' targets for every test example."""
        held = self.data.targets if self.data.order is None else self.data.targets[self.data.order]
        return float((self.test_data[1].double() - held.double().mean(dim=0)).square().mean())

    def spent_epsilon(self, completed: int, released: Sequence[ReleasedRound] | None = None) -> float | None:
        """The ε of the client that has spent most: of what was `released`, or else of so many rounds as planned."""
        return calibrate.spent_epsilon(
            self.algorithm, self.privacy, completed, self.population, self.round_limits, released
        )

    @cached_property
    def round_limits(self) -> dict[int, int]:
        """The clients whose budget ends before the run does, and the rounds that it lasts."""
        return calibrate.round_limits(self.algorithm, self.privacy, self.rounds, self.population)

    def spent_clients(self, round: int) -> frozenset[int]:
        """Whose budget is spent before this round."""
        return frozenset(client for client, lasts in self.round_limits.items() if lasts <= round)
