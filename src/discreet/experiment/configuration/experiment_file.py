"""An experiment's TOML file as one frozen record: data, model, promise, algorithm and settings."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias

from pydantic import Field

from discreet.algorithms.algorithm import Algorithm
from discreet.contract import contract
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.task import Task
from discreet.data.tasks.task_loading import load_task
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.configuration.algorithm_table import AnyAlgorithm, build_own_algorithm
from discreet.experiment.configuration.run_settings import RunSettings
from discreet.experiment.configuration.starter_files import BUILT_IN
from discreet.experiment.configuration.tune_table import Tune
from discreet.experiment.promise.promise import Privacy
from discreet.lazy_torch import Tensor, torch
from discreet.models import AnyModel
from discreet.own_part import OwnPart
from discreet.part import part, to_plain
from discreet.paths import Paths
from discreet.trust import Trust
from discreet.user_part import load_user_parts


@contract("metric")
class Metric(Protocol):
    """The contract of a metric: a function of the model's outputs and the targets. No guarantee covers its values."""

    @abstractmethod
    def __call__(self, outputs: Tensor, targets: Tensor) -> Any:
        """Return one number, or several in a dict by name."""


AnyMetric: TypeAlias = Annotated[str | None, OwnPart(Metric)]


@part
class Experiment(RunSettings):
    """An experiment's file: its data, model, promise and algorithm, beside the settings of the run.

    `loss` and `metric` name functions of the user as "file.py:function", where the task's own don't fit. A metric may
    also be a table: its kind is a class, whose objects are called, and its other keys are the class's arguments.

    Attributes:
        task: The data, and how it is divided among clients.
        model: The network to train.
        loss: A loss of your own, as "file.py:function".
        metric: A metric of your own, as "file.py:function" or a table.
        privacy: The promise. Without it, nothing is promised.
        algorithm: What happens in a round: a recipe, or the parts one by one.
        tune: What `discreet tune` searches. No other command reads it.
    """

    task: AnyTask
    model: AnyModel
    loss: str | None = None
    metric: AnyMetric = None
    privacy: Privacy | None = None
    algorithm: AnyAlgorithm
    tune: Annotated[Tune | None, Field(exclude_if=lambda tune: tune is None)] = None

    def load_task(self, generator: torch.Generator, paths: Paths) -> Task:
        """Load the data. A promise for one person bounds the rows of each person."""
        return load_task(self.task, generator, paths, None if self.privacy is None else self.privacy.person)

    def resolve(self, algorithm: Algorithm) -> dict[str, Any]:
        """Return the experiment in full as plain data, with its calibrated algorithm: what the run directory stores."""
        return {**to_plain(self), "algorithm": to_plain(algorithm)}


@dataclass(frozen=True)
class Source:
    """An experiment, the text it was read from, and where the files that it names are."""

    experiment: Experiment
    text: str
    paths: Paths

    def load_user_parts(self) -> Source:
        """Return the source with every part of the user's own built from its code, which runs that code."""
        return replace(self, experiment=load_user_parts(self.experiment, self.paths.folder, self.paths.trust))


def load_experiment(
    path: Path | None = None,
    overrides: tuple[str, ...] = (),
    data_dir: Path | None = None,
    trust: Trust | None = None,
) -> Source:
    """Read an experiment's file. No code that it names runs here, except a recipe of the user's own.

    Args:
        path: The file. None reads the built-in experiment on digits.
        overrides: Values to set, as `a.b=c`.
        data_dir: The folder of downloaded data sets.
        trust: Which code that the file names may run, here and later. None for nothing.

    Raises:
        UntrustedCode: The file names a recipe of the user's own, which may not run.
        InvalidInput: The file can't be read; the message names the key and what is allowed.
    """
    text = BUILT_IN if path is None else toml_document.read_toml_text(path)
    name = "the built-in experiment" if path is None else str(path)
    data = toml_document.parse_toml(text, name)
    if overrides:
        text = toml_document.override_values(text, overrides)
        data = toml_document.parse_toml(text, name)
    paths = Paths.default(Path.cwd() if path is None else path.resolve().parent, data_dir, trust)
    try:
        data = _build_own_recipe(data, paths)
        experiment = toml_document.build_record(Experiment, data)
    except InvalidInput as error:
        raise type(error)(f"{name}: {error.problem}", fix=error.fix) from None
    return Source(experiment, text, paths)


def _build_own_recipe(data: dict[str, Any], paths: Paths) -> dict[str, Any]:
    """Return the experiment with the algorithm that a recipe of the user's own composes, if it names one."""
    table = data.get("algorithm")
    if not isinstance(table, dict) or ":" not in str(table.get("recipe")):
        return data
    arguments = {key: value for key, value in table.items() if key != "recipe"}
    algorithm = build_own_algorithm(table["recipe"], arguments, paths.folder, paths.trust)
    return {**data, "algorithm": algorithm}
