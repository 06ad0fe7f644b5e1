"""A job, from a file or from Python objects: everything that can be wrong with either shows here."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.sparsifiers.common_mask import PublicTopK, missing_public_data
from discreet.data.tasks.task import Task
from discreet.engines import secure_terms
from discreet.engines.engine import MIN_SECURE_CLIENTS
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.configuration.experiment_file import Experiment, Flower, Secure, Settings, Source
from discreet.experiment.loop.job import Job
from discreet.experiment.promise import calibrate, person_bound
from discreet.experiment.promise.promise import Privacy
from discreet.models import UserModel
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.part import check_exact, to_plain
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.user_code import load_object


def build_job(
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
    experiment, folder, public = source.experiment, source.paths.folder, public or key
    if task is None:
        task = experiment.load_task(public.generator(Purpose.TASK), source.paths)
    module = build_model(experiment, task, folder, public.generator(Purpose.MODEL))
    own = {"loss": experiment.loss, "metric": experiment.metric}
    functions = {what: None if name is None else load_object(name, folder) for what, name in own.items()}
    population = declared or task.train.population
    algorithm = calibrate.calibrate_noise(
        experiment.algorithm, experiment.privacy, experiment.rounds, population, _count_parameters(module)
    )
    return _assemble(
        task,
        module,
        functions,
        rounds=experiment.rounds,
        key=key,
        algorithm=algorithm,
        privacy=experiment.privacy,
        settings=experiment.settings,
        resolved=experiment.resolve(algorithm),
        source_text=source.text,
        folder=folder,
        declared=declared,
        own_model=isinstance(experiment.model, UserModel),
    )


def build_job_from_objects(
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
    algorithm = calibrate.calibrate_noise(algorithm, privacy, rounds, task.train.population, _count_parameters(module))
    resolved = {
        "rounds": rounds,
        "seed": seed,
        "task": {"kind": "python", "name": task.name, "examples": list(task.train.sizes)},
        "model": {"kind": "python", "name": type(module).__qualname__},
        **{what: _function_name(each) for what, each in functions.items() if each is not None},
        "privacy": None if privacy is None else to_plain(privacy),
        "algorithm": to_plain(algorithm),
        **to_plain(settings),
    }
    return _assemble(
        task,
        module,
        functions,
        rounds=rounds,
        key=key,
        algorithm=algorithm,
        privacy=privacy,
        settings=settings,
        resolved=resolved,
        source_text="",
        folder=None,
        own_model=True,
    )


def _assemble(
    task: Task,
    module: nn.Module,
    functions: dict[str, Callable[..., Any] | None],
    *,
    algorithm: Algorithm,
    settings: Settings,
    resolved: dict[str, Any],
    own_model: bool,
    **rest: Any,
) -> Job:
    check_exact("algorithm", algorithm)
    check_exact("privacy", rest.get("privacy"))
    if isinstance(algorithm.sparsifier, PublicTopK) and task.public is None:
        raise missing_public_data()
    if isinstance(settings.engine, Secure) and not algorithm.aggregation.is_secure:
        raise InvalidInput(
            "A secure sum takes integers, and this algorithm sums real numbers.",
            fix='Use recipe = "ddp_fedavg" with noise = "skellam", or engine = { kind = "embedded" }.',
        )
    population = rest.get("declared") or task.train.population
    person_bound.check_task(task, rest["privacy"], private=bool(algorithm.releases(population, 0)))
    fewest = algorithm.sampling.cohort_bounds(population)[0]
    if isinstance(settings.engine, Secure) and fewest < MIN_SECURE_CLIENTS:
        raise InvalidInput(
            f"A secure sum needs at least {MIN_SECURE_CLIENTS} clients, and as few as {fewest} may be in a round.",
            fix='Let more clients join, or use engine = { kind = "embedded" }.',
        )
    if (
        isinstance(settings.engine, Secure | Flower)
        and algorithm.aggregation.is_secure
        and fewest >= MIN_SECURE_CLIENTS
    ):
        secure_terms.plan_degree(algorithm, population, signed=isinstance(settings.engine, Flower))
    device, dtype = _choose_device(settings.device), getattr(torch, settings.dtype)
    model = SupervisedModule(module, task.kind, loss=functions["loss"], metric=functions["metric"])
    model.check(task)
    data = task.train.to(device, dtype)
    params = {name: value.to(device, dtype) for name, value in model.params.items()}
    algorithm.trainer.check_model(model.loss, params, data.inputs[:1][None])
    verified = model.verify_isolation(task, params)
    return Job(
        task=task,
        data=data,
        public_data=None if task.public is None else task.public.to(device, dtype),
        test_data=(_to_device(task.test_inputs, device, dtype), _to_device(task.test_targets, device, dtype)),
        model=model,
        params=params,
        algorithm=algorithm,
        settings=settings,
        resolved_text=toml_document.format_toml(resolved),
        isolation_note=verified if own_model else None,
        **rest,
    )


def build_model(experiment: Experiment, task: Task, folder: Path, generator: torch.Generator) -> nn.Module:
    """The experiment's model; one of the user's own may lie beside the experiment's file."""
    model = experiment.model
    if isinstance(model, UserModel) and (folder / model.kind.rpartition(":")[0]).is_file():
        model = replace(model, kind=str(folder / model.kind))
    return model.build(task, generator)


def _function_name(function: Callable[..., Any]) -> str:
    """The same in every process; of a callable object it is the name of its class."""
    if isinstance(function, partial):
        return _function_name(function.func)
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _count_parameters(module: nn.Module) -> int:
    """How many numbers are learned, and so sent."""
    return sum(value.numel() for value in module.parameters() if value.requires_grad)


def _choose_device(wanted: str) -> torch.device:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InvalidInput("device is cuda, and torch finds no CUDA device here.", fix='Use device = "auto" or "cpu".')
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def _to_device(values: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    return values.to(device, dtype if values.is_floating_point() else None)
