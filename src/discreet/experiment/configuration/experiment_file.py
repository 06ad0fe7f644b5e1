"""One frozen record = one TOML file: an experiment with its promise, its parts and how it is run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import torch
from pydantic import Field

from discreet.algorithms.algorithm import Algorithm
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.task import Task
from discreet.data.tasks.task_loading import load_task
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.configuration.algorithm_table import AnyAlgorithm
from discreet.experiment.configuration.starter_files import BUILT_IN
from discreet.experiment.promise.promise import Privacy
from discreet.models import AnyModel
from discreet.part import Count, Flag, Index, NonNegative, Positive, part, to_plain
from discreet.paths import Paths

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Precision: TypeAlias = Literal["float32", "float64"]


@part
class Embedded:
    """Blocks of clients at once, as many as fit into `memory_gb`; by default half of what is free."""

    kind: Literal["embedded"] = "embedded"
    memory_gb: Positive | None = None


@part
class Reference:
    """One client after the other: slow, and reads like the papers."""

    kind: Literal["reference"] = "reference"


@part
class Secure:
    """As embedded, and every sum is made by real secure aggregation, from which clients drop out at random."""

    kind: Literal["secure"] = "secure"
    memory_gb: Positive | None = None
    drop_out: Annotated[NonNegative, Field(lt=1)] = 0.0  # the chance that a client leaves a round half-way


@part
class Ray:
    """As embedded, with the blocks spread over a Ray cluster, one worker on each of its CPUs, or of its GPUs.

    `address` is the cluster's; "auto" stands for the one that runs here, and "local" starts one. A worker's blocks fit
    into `memory_gb`; by default all workers together take half of what the cluster has.
    """

    kind: Literal["ray"] = "ray"
    address: str = "auto"
    workers: Count | None = None
    memory_gb: Positive | None = None


@part
class Flower:
    """Real clients over a network, by `discreet deploy`.

    Replies are waited for `timeout` seconds at most, and once enough are there, `patience` more for the others. A
    secure session serves so many rounds of one cohort.
    """

    kind: Literal["flower"] = "flower"
    timeout: Positive = 600.0
    patience: Positive = 30.0
    session_rounds: Count = 10


AnyEngine: TypeAlias = Annotated[Embedded | Secure | Reference | Ray | Flower, Field(discriminator="kind")]


@part
class Settings:
    """How an experiment is run and watched; nothing here changes what is promised."""

    engine: AnyEngine = Embedded()
    evaluate_every: Count | None = None  # about twenty times a run
    evaluate_training: Flag = False  # on training examples too, to see the gap; as often, and as little covered
    checkpoint_every: Count = 1
    dtype: Precision = "float32"
    device: Device = "auto"

    def is_evaluated(self, done: int, rounds: int) -> bool:
        return done == rounds or done % (self.evaluate_every or max(1, rounds // 20)) == 0


@part
class Experiment:
    """All that a run is made from. A seed makes it repeatable, and then its noise protects nobody."""

    rounds: Count
    seed: Index | None = None
    task: AnyTask
    model: AnyModel
    loss: str | None = None  # "file.py:function", where the task's own doesn't do
    metric: str | None = None
    privacy: Privacy | None = None
    algorithm: AnyAlgorithm
    engine: AnyEngine = Embedded()
    evaluate_every: Count | None = None
    evaluate_training: Flag = False
    checkpoint_every: Count = 1
    dtype: Precision = "float32"
    device: Device = "auto"

    @property
    def settings(self) -> Settings:
        return Settings(
            engine=self.engine,
            evaluate_every=self.evaluate_every,
            evaluate_training=self.evaluate_training,
            checkpoint_every=self.checkpoint_every,
            dtype=self.dtype,
            device=self.device,
        )

    def load_task(self, generator: torch.Generator, paths: Paths) -> Task:
        """The data; where one person is promised something, with few rows of each."""
        return load_task(self.task, generator, paths, None if self.privacy is None else self.privacy.person)

    def resolve(self, algorithm: Algorithm) -> dict[str, Any]:
        """The parts in full, as plain data: what the run directory stores. `algorithm` is ours with its noise."""
        return {**to_plain(self), "algorithm": to_plain(algorithm)}


@dataclass(frozen=True)
class Source:
    """An experiment, the text it was read from, and where what it names lies."""

    experiment: Experiment
    text: str
    paths: Paths


def load_experiment(path: Path | None = None, overrides: tuple[str, ...] = (), data_dir: Path | None = None) -> Source:
    """Read a file (without one: the built-in digits) with `a.b=c` overrides; InvalidInput says what is wrong."""
    text = BUILT_IN if path is None else toml_document.read_toml_text(path)
    name = "the built-in experiment" if path is None else str(path)
    data = toml_document.parse_toml(text, name)
    if overrides:
        text = toml_document.override_values(text, overrides)
        data = toml_document.parse_toml(text, name)
    try:
        experiment = toml_document.build_record(Experiment, data)
    except InvalidInput as error:
        raise type(error)(f"{name}: {error.problem}", fix=error.fix) from None
    folder = Path.cwd() if path is None else path.resolve().parent
    return Source(experiment, text, Paths.default(folder, data_dir))
