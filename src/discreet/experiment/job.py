"""All that the loop needs, ready to run: from a file or from Python objects, the same thing comes out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from discreet.algorithms import Algorithm
from discreet.engines import planned_sums
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import FEWEST, Engine, Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.errors import InvalidInput
from discreet.experiment import document, keeping
from discreet.experiment.config import Experiment, Flower, Ray, Reference, Secure, Settings, Source
from discreet.experiment.made import Made
from discreet.experiment.promise import Privacy
from discreet.federation import Federation
from discreet.models import Own
from discreet.own_code import local
from discreet.params import Params
from discreet.part import plain
from discreet.population import Population
from discreet.randomness import RunKey
from discreet.sparsifiers.common import PublicTopK, no_public_data
from discreet.tasks import Task
from discreet.tasks.supervised import Supervised

CONSTANT = "constant_mse"  # a model that is no better has learned nothing
TRAINING_EXAMPLES = 10_000  # on which a model is tried, at most


@dataclass(frozen=True)
class Job:
    """`algorithm` has all its noise; `data` lies on the device, in the precision that was asked for."""

    rounds: int
    key: RunKey
    task: Task
    data: Federation
    public: Federation | None
    test: tuple[Tensor, Tensor]
    model: Supervised
    params: Params
    algorithm: Algorithm
    privacy: Privacy | None
    settings: Settings
    resolved: str
    text: str
    folder: Path | None
    declared: Population | None = None  # of clients who hold their data themselves
    remote: Callable[[], Engine] | None = None  # how they are reached

    @property
    def population(self) -> Population:
        return self.declared or self.data.population

    @property
    def device(self) -> torch.device:
        return self.data.inputs.device

    def engine(self, block_size: int | None) -> tuple[Engine, Simulation, int]:
        """The engine with its block size fixed: bits depend on it, and free memory comes and goes."""
        simulation = Simulation(self.algorithm, self.data, self.model.loss, self.key, self.public)
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

    def reach(self) -> None:
        """Whether other machines that it needs are there, asked before a run directory is made."""
        if isinstance(chosen := self.settings.engine, Ray):
            from discreet.engines.ray.crew import Cluster

            Cluster.check(chosen.address, chosen.workers, self.device)

    def _on_ray(
        self, chosen: Ray, simulation: Simulation, block_size: int | None, memory: int | None
    ) -> tuple[Engine, Simulation, int]:
        from discreet.engines.ray.crew import Cluster, RayCrew
        from discreet.engines.ray.engine import RayEngine, shared_block

        cluster = Cluster.joined(chosen.address, chosen.workers, self.device)
        if block_size is None:
            fitting = self._fitting(simulation, memory or cluster.memory)
            block_size = shared_block(fitting, self.algorithm, self.population, cluster.size)
        embedded = EmbeddedEngine(simulation, block_size)
        return RayEngine(embedded, RayCrew(cluster, embedded)), simulation, block_size

    def _fitting(self, simulation: Simulation, memory: int | None) -> int:
        start = self.algorithm.broadcast(self.algorithm.init(self.params), 0, simulation.public_update)
        return EmbeddedEngine.fitting(simulation, start, memory).block

    def evaluate(self, params: Params) -> dict[str, float]:
        """What the model achieves on the test data; a squared error beside that of a constant."""
        found = self.model.evaluate(params, *self.test)
        if "mse" not in found:
            return found
        return {"mse": found.pop("mse"), CONSTANT: self._constant_mse, **found}

    def evaluate_training(self, params: Params) -> dict[str, float]:
        """The same on examples that clients train on: the same few in every round, drawn by the run's key."""
        return self.model.evaluate(params, *self._training)

    @cached_property
    def _training(self) -> tuple[Tensor, Tensor]:
        held = sum(self.data.sizes)
        drawn = torch.randperm(held, generator=self.key.generator("training examples"))[:TRAINING_EXAMPLES]
        return self.data.examples(drawn.sort().values)

    @cached_property
    def _constant_mse(self) -> float:
        """The error of whoever predicts the mean of the clients' targets for every test example."""
        held = self.data.targets if self.data.order is None else self.data.targets[self.data.order]
        return float((self.test[1].double() - held.double().mean(dim=0)).square().mean())

    def spent(self, done: int, made: Sequence[Made] | None = None) -> float | None:
        """The ε of the client that has spent most: of what was `made`, or else of so many rounds as planned."""
        return keeping.spent(self.algorithm, self.privacy, done, self.population, self.lasting, made)

    @cached_property
    def lasting(self) -> dict[int, int]:
        """The clients whose budget ends before the run does, and the rounds that it lasts."""
        return keeping.lasting(self.algorithm, self.privacy, self.rounds, self.population)

    def left(self, round: int) -> frozenset[int]:
        """Whose budget is spent before this round."""
        return frozenset(client for client, lasts in self.lasting.items() if lasts <= round)


def from_source(
    source: Source,
    key: RunKey,
    task: Task | None = None,
    declared: Population | None = None,
    public: RunKey | None = None,
) -> Job:
    """Load the data, build the model, find the noise: everything that can be wrong with a file shows here.

    `task` is the experiment's own, where this key's was loaded before; `declared` are clients whose data is elsewhere.
    `public` deals the task and draws the first model where others must do so too; else `key` does.
    """
    experiment, folder, public = source.experiment, source.places.folder, public or key
    if task is None:
        task = experiment.task.load(public.generator("task"), source.places)
    module = built(experiment, task, folder, public.generator("model"))
    own = {"loss": experiment.loss, "metric": experiment.metric}
    functions = {what: None if name is None else local(name, folder) for what, name in own.items()}
    population = declared or task.train.population
    algorithm = keeping.kept(
        experiment.algorithm, experiment.privacy, experiment.rounds, population, _dimension(module)
    )
    return _assembled(
        task,
        module,
        functions,
        rounds=experiment.rounds,
        key=key,
        algorithm=algorithm,
        privacy=experiment.privacy,
        settings=experiment.settings,
        resolved=experiment.resolved(algorithm),
        text=source.text,
        folder=folder,
        declared=declared,
    )


def from_objects(
    task: Task,
    module: nn.Module,
    functions: dict[str, Callable[..., Any] | None],
    *,
    rounds: int,
    seed: int | None,
    key: RunKey,
    algorithm: Algorithm,
    privacy: Privacy | None,
    settings: Settings,
) -> Job:
    """The same from what a Python program holds; the resolved experiment can only describe its data and its module."""
    algorithm = keeping.kept(algorithm, privacy, rounds, task.train.population, _dimension(module))
    resolved = {
        "rounds": rounds,
        "seed": seed,
        "task": {"kind": "python", "name": task.name, "examples": list(task.train.sizes)},
        "model": {"kind": "python", "name": type(module).__qualname__},
        **{what: getattr(each, "__qualname__", repr(each)) for what, each in functions.items() if each is not None},
        "privacy": None if privacy is None else plain(privacy),
        "algorithm": plain(algorithm),
        **plain(settings),
    }
    return _assembled(
        task,
        module,
        functions,
        rounds=rounds,
        key=key,
        algorithm=algorithm,
        privacy=privacy,
        settings=settings,
        resolved=resolved,
        text="",
        folder=None,
    )


def _assembled(
    task: Task,
    module: nn.Module,
    functions: dict[str, Callable[..., Any] | None],
    *,
    algorithm: Algorithm,
    settings: Settings,
    resolved: dict[str, Any],
    **rest: Any,
) -> Job:
    if isinstance(algorithm.sparsifier, PublicTopK) and task.public is None:
        raise no_public_data()
    if isinstance(settings.engine, Secure) and not algorithm.aggregation.secure:
        raise InvalidInput(
            "A secure sum takes integers, and this algorithm sums real numbers.",
            fix='Use recipe = "ddp_fedavg" with noise = "skellam", or engine = { kind = "embedded" }.',
        )
    population = rest.get("declared") or task.train.population
    fewest = algorithm.sampling.cohorts(population)[0]
    if isinstance(settings.engine, Secure) and fewest < FEWEST:
        raise InvalidInput(
            f"A secure sum needs at least {FEWEST} clients, and as few as {fewest} may be in a round.",
            fix='Let more clients join, or use engine = { kind = "embedded" }.',
        )
    if isinstance(settings.engine, Secure | Flower) and algorithm.aggregation.secure and fewest >= FEWEST:
        planned_sums.degree_of(algorithm, population, signed=isinstance(settings.engine, Flower))
    device, dtype = _device(settings.device), getattr(torch, settings.dtype)
    model = Supervised(module, task.kind, loss=functions["loss"], metric=functions["metric"])
    model.check(task)
    data = task.train.to(device, dtype)
    params = {name: value.to(device, dtype) for name, value in model.params.items()}
    algorithm.trainer.check(model.loss, params, data.inputs[:1][None])
    return Job(
        task=task,
        data=data,
        public=None if task.public is None else task.public.to(device, dtype),
        test=(_moved(task.test_inputs, device, dtype), _moved(task.test_targets, device, dtype)),
        model=model,
        params=params,
        algorithm=algorithm,
        settings=settings,
        resolved=document.written(resolved),
        **rest,
    )


def built(experiment: Experiment, task: Task, folder: Path, generator: torch.Generator) -> nn.Module:
    """The experiment's model; one of the user's own may lie beside the experiment's file."""
    model = experiment.model
    if isinstance(model, Own) and (folder / model.kind.rpartition(":")[0]).is_file():
        model = replace(model, kind=str(folder / model.kind))
    return model.build(task, generator)


def _dimension(module: nn.Module) -> int:
    """How many numbers are learned, and so sent."""
    return sum(value.numel() for value in module.parameters() if value.requires_grad)


def _device(wanted: str) -> torch.device:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InvalidInput("device is cuda, and torch finds no CUDA device here.", fix='Use device = "auto" or "cpu".')
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def _moved(values: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    return values.to(device, dtype if values.is_floating_point() else None)
