"""All that the loop needs, ready to run: from a file or from Python objects, the same thing comes out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from discreet.algorithms import Algorithm
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Engine, Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.errors import InvalidInput
from discreet.experiment import document, promise
from discreet.experiment.config import Embedded, Experiment, Settings, Source
from discreet.experiment.promise import Privacy
from discreet.federation import Federation
from discreet.models import Own
from discreet.own_code import local
from discreet.params import Params
from discreet.part import plain
from discreet.population import Population
from discreet.randomness import RunKey
from discreet.tasks import Task
from discreet.tasks.supervised import Supervised

CONSTANT = "constant_mse"  # a model that is no better has learned nothing


@dataclass(frozen=True)
class Job:
    """`algorithm` has all its noise; `data` lies on the device, in the precision that was asked for."""

    rounds: int
    key: RunKey
    task: Task
    data: Federation
    test: tuple[Tensor, Tensor]
    model: Supervised
    params: Params
    algorithm: Algorithm
    privacy: Privacy | None
    settings: Settings
    resolved: str
    text: str
    folder: Path | None

    @property
    def population(self) -> Population:
        return self.data.population

    @property
    def device(self) -> torch.device:
        return self.data.inputs.device

    def engine(self, block_size: int | None) -> tuple[Engine, Simulation, int]:
        """The engine with its block size fixed: bits depend on it, and free memory comes and goes."""
        simulation = Simulation(self.algorithm, self.data, self.model.loss, self.key)
        chosen = self.settings.engine
        if not isinstance(chosen, Embedded):
            return ReferenceEngine(simulation), simulation, 1
        if block_size is None:
            memory = None if chosen.memory_gb is None else int(chosen.memory_gb * 1e9)
            start = self.algorithm.broadcast(self.algorithm.init(self.params), 0)
            block_size = EmbeddedEngine.fitting(simulation, start, memory).block
        return EmbeddedEngine(simulation, block_size), simulation, block_size

    def evaluate(self, params: Params) -> dict[str, float]:
        """What the model achieves on the test data; a squared error beside that of a constant."""
        found = self.model.evaluate(params, *self.test)
        if "mse" not in found:
            return found
        return {"mse": found.pop("mse"), CONSTANT: self._constant_mse, **found}

    @cached_property
    def _constant_mse(self) -> float:
        """The error of whoever predicts the mean of the clients' targets for every test example."""
        held = self.data.targets if self.data.order is None else self.data.targets[self.data.order]
        return float((self.test[1].double() - held.double().mean(dim=0)).square().mean())

    def spent(self, done: int) -> float | None:
        return promise.spent(self.algorithm, self.privacy, done, self.population)


def from_source(source: Source, key: RunKey, task: Task | None = None) -> Job:
    """Load the data, build the model, find the noise: everything that can be wrong with a file shows here.

    `task` is the experiment's own, where this key's was loaded before.
    """
    experiment, folder = source.experiment, source.places.folder
    if task is None:
        task = experiment.task.load(key.generator("task"), source.places)
    module = built(experiment, task, folder, key.generator("model"))
    own = {"loss": experiment.loss, "metric": experiment.metric}
    functions = {what: None if name is None else local(name, folder) for what, name in own.items()}
    algorithm = promise.kept(experiment.algorithm, experiment.privacy, experiment.rounds, task.train.population)
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
    algorithm = promise.kept(algorithm, privacy, rounds, task.train.population)
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
    settings: Settings,
    resolved: dict[str, Any],
    **rest: Any,
) -> Job:
    device, dtype = _device(settings.device), getattr(torch, settings.dtype)
    model = Supervised(module, task.kind, loss=functions["loss"], metric=functions["metric"])
    model.check(task)
    return Job(
        task=task,
        data=task.train.to(device, dtype),
        test=(_moved(task.test_inputs, device, dtype), _moved(task.test_targets, device, dtype)),
        model=model,
        params={name: value.to(device, dtype) for name, value in model.params.items()},
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


def _device(wanted: str) -> torch.device:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InvalidInput("device is cuda, and torch finds no CUDA device here.", fix='Use device = "auto" or "cpu".')
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def _moved(values: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    return values.to(device, dtype if values.is_floating_point() else None)
