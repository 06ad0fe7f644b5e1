"""Build a job from an experiment's file or from Python objects, and refuse what can't be run."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from discreet.algorithms.aggregation import Plain
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.population import Population
from discreet.client_layers.precision import check_precision
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.configuration import toml_document
from discreet.experiment.configuration.experiment_file import Experiment, Source
from discreet.experiment.configuration.run_settings import RunSettings
from discreet.experiment.job import Job, data_facts
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.terms import ModelSize, Terms
from discreet.experiment.terms_builder import calibrate_algorithm
from discreet.models import AnyModel
from discreet.models.networks.user_model import UserModel
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import count_values
from discreet.part import to_plain
from discreet.paths import Paths
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.user_code import load_object
from discreet.user_part import UserPart, load_user_parts, user_parts
from discreet.words import fill


def build_job(
    source: Source,
    key: RunKey,
    task: Task | None = None,
    declared: Population | None = None,
    public: RunKey | None = None,
) -> Job:
    """Load the data, build the model and calibrate the noise. Everything that can be wrong with a file shows here.

    Args:
        source: The experiment, and where its files are.
        key: The run's key.
        task: The experiment's data, if this key's was loaded before.
        declared: The public client sizes of clients who keep their data themselves.
        public: The key that deals the task and draws the first model, where others must draw the same; else `key`.
    """
    source = source.load_user_parts()
    experiment, paths, public = source.experiment, source.paths, public or key
    if task is None:
        task = experiment.load_task(public.generator(Purpose.TASK), paths)
    module = build_model(experiment.model, task, paths, public.generator(Purpose.MODEL))
    names = {"loss": experiment.loss, "metric": experiment.metric}
    functions = {what: _load_function(name, paths) for what, name in names.items()}
    job = build_job_from_objects(
        task,
        module,
        functions,
        key=key,
        algorithm=experiment.algorithm,
        privacy=experiment.privacy,
        settings=experiment,
        declared=declared,
        resolve=experiment.resolve,
    )
    note = job.isolation_note if isinstance(experiment.model, UserModel) else None
    return replace(job, source_text=source.text, folder=paths.folder, isolation_note=note)


def build_job_from_objects(
    task: Task,
    module: nn.Module,
    functions: dict[str, Callable[..., Any] | None],
    *,
    key: RunKey,
    algorithm: Algorithm,
    privacy: Privacy | None,
    settings: RunSettings,
    declared: Population | None = None,
    resolve: Callable[[Algorithm], dict[str, Any]] | None = None,
) -> Job:
    """Calibrate the noise, check that the parts fit together, and move everything to the device.

    Args:
        task: The data.
        module: The network, whose isolation of examples is verified.
        functions: The user's own "loss" and "metric". None for those of the task.
        key: The run's key.
        algorithm: The algorithm as the user wrote it.
        privacy: The promise. None for a run without privacy.
        settings: The settings of the run.
        declared: The public client sizes of clients who keep their data themselves.
        resolve: Returns the experiment with this algorithm in full. None can only describe task, module and functions.
    """
    _check_exact_types(task, algorithm, privacy)
    population = declared or task.train.population
    facts = data_facts(task, is_here=declared is None)
    algorithm = calibrate_algorithm(facts, algorithm, privacy, settings, population, _count_parameters(module))
    device, dtype = choose_device(settings.device), getattr(torch, settings.dtype)
    check_precision(settings.precision, settings.dtype, None if declared is not None else device)
    model = SupervisedModule(module, task.kind, loss=functions["loss"], metric=functions["metric"])
    model.check(task)
    data = task.train.move_to(device, dtype)
    params = {name: value.to(device, dtype) for name, value in model.params.items()}
    algorithm.trainer.check_model(model.loss, params, data.inputs[:1][None])
    note = model.verify_isolation(task, params)
    tried: list[str] = []
    if user_parts(algorithm):
        from discreet.testing import try_algorithm  # takes a tenth of a second to import

        tried = try_algorithm(algorithm, population, model.loss, params, data.inputs[:1], data.targets[:1])
    if resolve is None:
        resolved = {
            **to_plain(settings),
            "task": {"kind": "python", "name": task.name, "examples": list(task.train.sizes)},
            "model": {"kind": "python", "name": type(module).__qualname__},
            **{what: _function_name(function) for what, function in functions.items() if function is not None},
            "privacy": None if privacy is None else to_plain(privacy),
            "algorithm": to_plain(algorithm),
        }
    else:
        resolved = resolve(algorithm)
    return Job(
        settings=settings,
        key=key,
        task=task,
        data=data,
        public_data=None if task.public is None else task.public.move_to(device, dtype),
        test_data=_pair_to_device((task.test_inputs, task.test_targets), device, dtype),
        validation_data=None if task.validation is None else _pair_to_device(task.validation, device, dtype),
        model=model,
        params=params,
        algorithm=algorithm,
        privacy=privacy,
        resolved_text=toml_document.format_toml(resolved),
        declared=declared,
        isolation_note=note,
        part_trials=tuple(tried),
    )


def build_terms(source: Source, key: RunKey) -> Terms:
    """Load the data and calibrate the noise, without running a model, loss or metric of the user's own.

    Raises:
        UntrustedCode: The price itself depends on code that may not run: the task's or a part's of the algorithm.
        Unsupported: The price depends on the size of a model that may not run.
    """
    experiment, paths, trust = source.experiment, source.paths, source.paths.trust
    experiment = load_user_parts(experiment, paths.folder, trust, skip=("metric",))
    task = experiment.load_task(key.generator(Purpose.TASK), paths)
    own = experiment.model if isinstance(experiment.model, UserModel) else None
    module = None if own is not None else build_model(experiment.model, task, paths, key.generator(Purpose.MODEL))
    dimension = None if module is None else _count_parameters(module)
    aggregation = experiment.algorithm.aggregation
    if own is not None and not (isinstance(aggregation, Plain) or aggregation.needs_each_upload):
        raise Unsupported(
            f"What a sum of integers reveals depends on the model's size, and {own.kind} was not run.",
            fix="Read it; then add --trust to run it.",
        )
    population, data = task.train.population, data_facts(task, is_here=True)
    algorithm = calibrate_algorithm(data, experiment.algorithm, experiment.privacy, experiment, population, dimension)
    size = None
    if module is not None:
        dtype = getattr(torch, experiment.dtype)
        params = {name: value.to(dtype) for name, value in module.named_parameters() if value.requires_grad}
        size = ModelSize(count_values(params), message_bits(algorithm, params))
    return Terms(
        settings=experiment,
        algorithm=algorithm,
        privacy=experiment.privacy,
        population=population,
        data=data,
        is_seeded=key.is_seeded,
        size=size,
        metric_names=None,
        unknown=tuple(_unknown_sentences(experiment)),
        isolation_note=None if own is None else fill("assumes.model_not_run", model=own.kind),
    )


def _unknown_sentences(experiment: Experiment) -> Iterator[str]:
    """Say what is not known because code of the user's own was not run."""
    if isinstance(experiment.model, UserModel):
        yield (
            f"{experiment.model.kind} was not run, so the model's size, the bytes and the noise-to-signal ratio are "
            "not known, and whether the algorithm can train it is not checked. Read it; then add --trust to see them."
        )
    for name in (experiment.loss, experiment.metric):
        if name is not None:
            reference = name.kind if isinstance(name, UserPart) else name
            yield f"{reference} was not run and not checked; no number of a plan depends on it."


def _check_exact_types(task: Task, algorithm: Algorithm, privacy: Privacy | None) -> None:
    """Refuse objects that only behave like a task, an algorithm or a promise: what they do would be certified."""
    exact = (("clients", task, Task), ("algorithm", algorithm, Algorithm), ("privacy", privacy, Privacy))
    for what, value, kind in exact:
        if type(value) is not kind and value is not None:
            got = f"an object of the class {type(value).__name__}"
            raise InvalidInput(f"{what} must be a part itself, of the class {kind.__name__}, and got {got}.")


def build_model(model: AnyModel, task: Task, paths: Paths, generator: torch.Generator) -> nn.Module:
    """Build a model. The code of a user's own model is in the experiment's folder, and must be trusted."""
    return model.build(task, generator, paths) if isinstance(model, UserModel) else model.build(task, generator)


def _load_function(name: str | UserPart | None, paths: Paths) -> Callable[..., Any] | None:
    """Load a loss or a metric: a function by its reference, or an object that is called."""
    if isinstance(name, UserPart):
        return name.target  # type: ignore[no-any-return]
    return None if name is None else load_object(name, paths.folder, paths.trust)


def _function_name(function: Callable[..., Any]) -> str:
    """Return a name that is the same in every process. A callable object goes by the name of its class."""
    if isinstance(function, partial):
        return _function_name(function.func)
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _count_parameters(module: nn.Module) -> int:
    """Count the trained parameters, which are the numbers that a client sends.

    Raises:
        InvalidInput: A lazy layer has no parameters yet.
    """
    lazy = [name for name, value in module.named_parameters() if isinstance(value, nn.UninitializedParameter)]
    if lazy:
        raise InvalidInput(
            f"Every parameter must have its shape before training, and {lazy[0]} of a lazy layer has none.",
            fix="Call the model once on a batch of zeros of the right shape, or use a layer with its input size, such "
            "as torch.nn.Linear(4, 2).",
        )
    return sum(value.numel() for value in module.parameters() if value.requires_grad)


def choose_device(wanted: str) -> torch.device:
    """Return the device of a setting: `auto` is a GPU if there is one.

    Raises:
        InvalidInput: The setting is `cuda`, and torch finds none.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InvalidInput("device is cuda, and torch finds no CUDA device here.", fix='Use device = "auto" or "cpu".')
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def _pair_to_device(pair: tuple[Tensor, Tensor], device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Move inputs and targets to the device, floating-point numbers in the precision of the settings."""
    inputs, targets = (values.to(device, dtype if values.is_floating_point() else None) for values in pair)
    return inputs, targets
