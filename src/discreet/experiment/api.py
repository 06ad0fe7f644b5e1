"""For Python programs and notebooks: train, and open what was trained. The command line uses the same functions."""

import copy
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeAlias

import torch
from rich.console import Console
from torch import nn

from discreet.algorithms.algorithm import Algorithm
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.task import Task
from discreet.data.tasks.task_loading import load_task
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.configuration.experiment_file import (
    AnyEngine,
    Device,
    Embedded,
    Experiment,
    Precision,
    Settings,
    Source,
)
from discreet.experiment.loop import job_builder, progress, training_loop
from discreet.experiment.loop.job import Job
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.run_directory import run_keys
from discreet.experiment.run_directory.resume_check import check_version
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.models import AnyModel
from discreet.part import Count, Index, from_plain
from discreet.paths import Paths
from discreet.privacy.guarantee import Guarantee
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

PathLike: TypeAlias = str | Path


@dataclass(frozen=True)
class Run:
    """What a run left behind. `stopped` says why it ended before its last round; None when it didn't."""

    directory: Path
    rounds: int
    metrics: dict[str, Any]
    guarantees: tuple[Guarantee, ...]
    stopped: str | None = None
    module: nn.Module | None = field(default=None, repr=False)
    data_dir: Path | None = field(default=None, repr=False)

    @property
    def guarantee(self) -> Guarantee | None:
        """The one that was promised; without a promise the first there is, and None for a run without privacy."""
        return self.guarantees[0] if self.guarantees else None

    @property
    def history(self) -> list[dict[str, Any]]:
        """A line a round. Nothing in it is covered by a guarantee but `epsilon`."""
        return RunRecord.open(self.directory).read_rounds()

    @cached_property
    def model(self) -> nn.Module:
        """A plain module with the trained weights, ready to predict with."""
        record = RunRecord.open(self.directory)
        module = _rebuild_module(record, self.data_dir) if self.module is None else copy.deepcopy(self.module)
        module.load_state_dict(record.load_model())
        return module.eval()


def train(
    model: nn.Module | AnyModel,
    clients: Task | AnyTask,
    *,
    rounds: int,
    algorithm: Algorithm,
    privacy: Privacy | None = None,
    loss: Callable[..., Any] | None = None,
    metric: Callable[..., Any] | None = None,
    seed: int | None = None,
    out: PathLike | None = None,
    ledger: PathLike | None = None,
    resume: PathLike | None = None,
    key_dir: PathLike | None = None,
    progress: bool | None = None,
    engine: AnyEngine = Embedded(),  # noqa: B008 - a frozen record
    evaluate_every: int | None = None,
    evaluate_training: bool = False,
    checkpoint_every: int = 1,
    dtype: Precision = "float32",
    device: Device = "auto",
    data_dir: PathLike | None = None,
    accept_data_ranges: bool = False,
) -> Run:
    """Train `model` on the clients' data for so many rounds, under the promise, and write a run directory.

    The noise is computed from the promise. `ledger` names one that outlives this run; without it the run keeps its
    own, which counts this run only. `resume` goes on with a run that was stopped, given the same arguments, data and
    code; others are refused. A seed makes the run repeatable, and then its noise protects nobody. The module that is
    passed in is never changed. `data_dir` holds the data sets that clients name; `discreet data get` puts them there.
    A table whose ranges were taken from the data is trained on only with `accept_data_ranges`, since no guarantee
    covers what they reveal.
    """
    from_plain(Count, rounds)
    if seed is not None:
        from_plain(Index, seed)
    before = None if resume is None else _open_for_resume(Path(resume), _optional_path(key_dir))
    key = (
        _choose_key(seed)
        if before is None or seed is not None
        else run_keys.load_key(before.identity.id, _optional_path(key_dir))
    )
    if isinstance(clients, Task):
        task = clients
    else:
        paths = Paths.default(data=_optional_path(data_dir))
        task = load_task(clients, key.generator(Purpose.TASK), paths, None if privacy is None else privacy.person)
    module = model if isinstance(model, nn.Module) else model.build(task, key.generator(Purpose.MODEL))
    ready = job_builder.build_job_from_objects(
        task,
        module,
        {"loss": loss, "metric": metric},
        rounds=rounds,
        seed=seed,
        key=key,
        algorithm=algorithm,
        privacy=privacy,
        settings=Settings(
            engine=engine,
            evaluate_every=evaluate_every,
            evaluate_training=evaluate_training,
            checkpoint_every=checkpoint_every,
            dtype=dtype,
            device=device,
        ),
    )
    ready = replace(ready, accept_data_ranges=accept_data_ranges or _has_accepted(before))
    with _show_progress(ready, Console(), progress) as watch:
        if before is None:
            where = Path(out) if out is not None else new_run_path(task.name)
            outcome = training_loop.start(ready, where, _optional_path(ledger), _optional_path(key_dir), watch)
        else:
            outcome = training_loop.resume(ready, before, _optional_path(key_dir), watch)
    write_page(outcome.record.path)
    trained = ready.model.module_with(ready.model.params)
    return run_of_outcome(outcome, trained)


def load(directory: PathLike, module: nn.Module | None = None, data_dir: PathLike | None = None) -> Run:
    """Open a run. Its model is built again from the experiment; one that came from Python needs its `module`."""
    record = RunRecord.open(Path(directory))
    record.load_model()  # a run without a model is not one to load
    found = record.read_outcome()
    cards = tuple(from_plain(Guarantee, card) for card in found["guarantees"])
    return Run(
        record.path, found["rounds"], found["metrics"], cards, found["stopped"], module, _optional_path(data_dir)
    )


def prepare_job(source: Source, *, accept_data_ranges: bool = False) -> Job:
    """All that can be wrong with an experiment shows here, before anything is written."""
    ready = job_builder.build_job(source, _choose_key(source.experiment.seed))
    return replace(ready, accept_data_ranges=accept_data_ranges)


def reopen_run(directory: Path, key_dir: Path | None, data_dir: Path | None = None) -> tuple[Job, RunRecord]:
    """A run that was stopped, ready to go on."""
    record = RunRecord.open(directory)
    if record.identity.folder is None:
        raise InvalidInput(f"{directory} was made from Python.", fix="Go on with discreet.train(..., resume=...).")
    _refuse_finished(record, key_dir)
    check_version(record)
    experiment = _read_experiment(record)
    key = run_keys.load_key(record.identity.id, key_dir) if experiment.seed is None else _choose_key(experiment.seed)
    paths = Paths.default(Path(record.identity.folder), data_dir)
    source = Source(experiment, record.read_text("experiment.toml"), paths)
    ready = job_builder.build_job(source, key)
    return replace(ready, accept_data_ranges=_has_accepted(record)), record


def _open_for_resume(directory: Path, key_dir: Path | None) -> RunRecord:
    """A run that this version may go on with."""
    record = RunRecord.open(directory)
    _refuse_finished(record, key_dir)
    check_version(record)
    return record


def _refuse_finished(record: RunRecord, key_dir: Path | None) -> None:
    if record.is_finished():
        run_keys.delete_key(record.identity.id, key_dir)
        raise InvalidInput(f"The run in {record.path} is finished.", fix="Start a new run to train longer.")


def run_of_outcome(outcome: Outcome, module: nn.Module | None = None) -> Run:
    return Run(outcome.record.path, outcome.completed, outcome.metrics, outcome.guarantees, outcome.stopped, module)


def new_run_path(name: str) -> Path:
    """A place for a run that was given none: under runs/, by its task and the time."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}-{token_hex(2)}"


def write_page(directory: Path) -> Path:
    """Write report.html. By name, since pages read run directories and so stand above what makes them."""
    written: Path = importlib.import_module("discreet.report.run_page").write(directory)
    return written


def _show_progress(ready: Job, console: Console, wanted: bool | None) -> AbstractContextManager[training_loop.Watch]:
    budget = ready.privacy.largest_epsilon if ready.privacy else None
    if wanted or (wanted is None and (console.is_terminal or console.is_jupyter)):
        return progress.progress_bar(ready.rounds, 0, budget, console)
    return progress.no_progress()


def _rebuild_module(record: RunRecord, data_dir: Path | None) -> nn.Module:
    if record.identity.folder is None:
        raise InvalidInput(
            f"{record.path} was made from Python, which alone knows its module.",
            fix="Pass it: discreet.load(directory, module=...).",
        )
    experiment = _read_experiment(record)
    anyhow = torch.Generator()  # only shapes count: the weights come from the record
    paths = Paths.default(Path(record.identity.folder), data_dir)
    return job_builder.build_model(experiment, experiment.load_task(anyhow, paths), paths.folder, anyhow)


def _has_accepted(record: RunRecord | None) -> bool:
    """Whether ranges taken from the data were accepted when the run was started."""
    return record is not None and record.identity.data_ranges


def _read_experiment(record: RunRecord) -> Experiment:
    return toml_document.build_record(
        Experiment, toml_document.parse_toml(record.read_text("resolved.toml"), "resolved.toml")
    )


def _choose_key(seed: int | None) -> RunKey:
    return RunKey.generate() if seed is None else RunKey.from_seed(seed)


def _optional_path(given: PathLike | None) -> Path | None:
    return None if given is None else Path(given)
