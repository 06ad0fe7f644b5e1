"""For Python programs and notebooks: train a model, and load a run. The command line uses the same functions."""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any, Required, TypeAlias, Unpack

import torch
from rich.console import Console
from torch import nn

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.input_scale import CENTRE, SPREAD, InputScale
from discreet.data.tables.table_columns import Predictions
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.task import Task, blank_task
from discreet.data.tasks.task_loading import load_task
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.configuration.experiment_file import Experiment, Source
from discreet.experiment.configuration.run_settings import SettingKeywords, Settings
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder, progress, training_loop
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.loop.session import Session
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.run_directory import run_keys
from discreet.experiment.run_directory.resume_check import check_model_files, check_version
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.experiment.terms import Terms
from discreet.models import AnyModel
from discreet.models.standardised_model import standardise_inputs
from discreet.models.table_prediction import find_rows, predict_rows
from discreet.part import from_plain
from discreet.paths import Paths
from discreet.privacy.guarantee import Guarantee
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.trust import Trust
from discreet.trust_store import trust_remembered
from discreet.user_part import load_user_parts

PathLike: TypeAlias = str | Path
TRUST_REMEDY = "Read it; then remember it with `discreet trust FILE`, or import it yourself and pass the object."
LOAD_REMEDY = "Read it; then use discreet.load(directory, trust=True), or remember it with: discreet trust DIRECTORY"


@dataclass(frozen=True)
class Run:
    """A run: its model, guarantees and metrics.

    Attributes:
        directory: The run directory.
        rounds: Number of completed rounds.
        metrics: The evaluation of the last model on test data. No guarantee covers it.
        guarantees: What is certified, the promised guarantee first.
        stopped: Why the run ended before its last round. None if it didn't.
        module: The module that the trained weights are loaded into. None builds it from the experiment.
        data_dir: The folder of downloaded data sets, if the module is built from the experiment.
        trust: Which code may run, if the module is built from the experiment.
    """

    directory: Path
    rounds: int
    metrics: dict[str, Any]
    guarantees: tuple[Guarantee, ...]
    stopped: str | None = None
    module: nn.Module | None = field(default=None, repr=False)
    data_dir: Path | None = field(default=None, repr=False)
    trust: Trust = field(default_factory=Trust.no_code, repr=False)

    @property
    def guarantee(self) -> Guarantee | None:
        """The promised guarantee; without a promise the first one, and None for a run without privacy."""
        return self.guarantees[0] if self.guarantees else None

    @property
    def history(self) -> list[dict[str, Any]]:
        """The record of every round, in order. A guarantee covers only its `epsilon`."""
        return RunRecord.open(self.directory).read_rounds()

    @cached_property
    def model(self) -> nn.Module:
        """A plain module with the trained weights, in evaluation mode.

        Raises:
            UntrustedCode: The experiment names Python files that would have to run, and nobody has trusted them.
        """
        record = RunRecord.open(self.directory)
        if self.module is None:
            module = _rebuild_module(record, self.data_dir, self.trust)
        else:
            module = copy.deepcopy(self.module)
        weights = record.load_model()
        input_scale = InputScale.find(weights)
        module.load_state_dict({name: value for name, value in weights.items() if name not in (CENTRE, SPREAD)})
        return standardise_inputs(module.eval(), input_scale)

    def predict(self, rows: Any) -> Predictions:
        """Predict for new rows of a table, by the run directory alone: the training data is not needed.

        Args:
            rows: A CSV or Parquet file, a data frame, or a mapping from the names of columns to their values. Columns
                that the model was not trained on, such as the label, are not looked at.

        Returns:
            What is predicted for each row, in the order of the rows: a value with the probability of each, or a number
            in the label's own units.

        Raises:
            InvalidInput: The run was not on a table, a column is missing, or a cell can't be read.

        Example:
            ```python
            run = discreet.load("runs/visits")
            run.predict("new.csv").probabilities["yes"]
            ```
        """
        columns = RunRecord.open(self.directory).read_columns()
        if columns is None:
            raise InvalidInput(
                f"{self.directory} holds a model that was not trained on a table.", fix="Call run.model(inputs)."
            )
        return predict_rows(self.model, columns, find_rows(rows))


def train(
    model: nn.Module | AnyModel,
    clients: Task | AnyTask,
    *,
    rounds: int,
    algorithm: Algorithm,
    privacy: Privacy | None = None,
    loss: Callable[..., Any] | None = None,
    metric: Callable[..., Any] | None = None,
    out: PathLike | None = None,
    ledger: PathLike | None = None,
    resume: PathLike | None = None,
    key_dir: PathLike | None = None,
    data_dir: PathLike | None = None,
    progress: bool | None = None,
    accept_data_ranges: bool = False,
    as_far_as_it_goes: bool = False,
    **settings: Unpack[SettingKeywords],
) -> Run:
    """Train a model on the clients' data under a promise, and write a run directory.

    The noise is computed from the promise. The module that is passed in is never changed.

    Args:
        model: The module to train, or a model's record such as `Linear()`.
        clients: The clients' data, from `clients_from_csv`, `clients_from_arrays` or a task's record.
        rounds: Number of rounds.
        algorithm: What happens in a round, from a recipe such as `pfl(...)` or `dp_fedavg(...)`.
        privacy: The promise. None for a run without privacy.
        loss: A function of (outputs, targets), where the task's own loss doesn't fit.
        metric: A function of (outputs, targets) that is reported beside the loss.
        out: Where to write the run directory. By default a new folder in runs/.
        ledger: A ledger that outlives this run. Without it the run keeps its own, which counts this run only.
        resume: The directory of a stopped run to resume. Other arguments, data or code than before are refused.
        key_dir: Where the run's key is kept until the run is finished. By default in the user's state folder.
        data_dir: The folder of downloaded data sets, where `discreet data get` puts them.
        progress: Whether to show a progress bar. By default in a terminal and in a notebook.
        accept_data_ranges: Train on a table whose ranges were taken from the data. No guarantee covers what they
            reveal.
        as_far_as_it_goes: Train though the ledger can't pay for all rounds, and stop when it can't pay for the next.
        **settings: The other settings of a run:
            seed: Makes the run repeatable; its noise then protects nobody.
            engine: What computes the sum of a cohort, such as `Embedded()`, which is the default.
            evaluate_every: Rounds between two evaluations. By default about twenty evaluations in a run.
            evaluate_training: Whether to evaluate on training examples too.
            checkpoint_every: Rounds between two checkpoints.
            dtype: "float32" or "float64".
            device: "auto", "cpu" or "cuda".

    Returns:
        The run: its model, metrics, guarantees and directory.

    Raises:
        InvalidInput: Something doesn't fit together; the message says what to do. Nothing was written.
        BudgetRefused: The noise can't keep the promise, or the ledger can't pay for all rounds.

    Example:
        >>> import discreet, torch
        >>> clients = discreet.clients_from_csv("visits.csv", client="hospital", label="readmitted")
        >>> run = discreet.train(
        ...     torch.nn.Linear(54, 2),
        ...     clients,
        ...     rounds=60,
        ...     algorithm=discreet.pfl(local_steps=1, sampling_rate=0.25, clip_norm=0.5, learning_rate=4.0),
        ...     privacy=discreet.Privacy(unit="example", against="server", epsilon=2, delta=1e-4),
        ... )
        >>> print(run.guarantee)
    """
    opened = _open_session(
        model,
        clients,
        rounds=rounds,
        algorithm=algorithm,
        privacy=privacy,
        loss=loss,
        metric=metric,
        out=out,
        ledger=ledger,
        resume=resume,
        key_dir=key_dir,
        data_dir=data_dir,
        accept_data_ranges=accept_data_ranges,
        as_far_as_it_goes=as_far_as_it_goes,
        **settings,
    )
    budget = privacy.largest_epsilon if privacy else None
    with opened, opened.catch_interrupts(), _show_progress(rounds, budget, Console(), progress) as watch:
        for record in opened:
            watch(dict(record))
    return opened.run


class SessionKeywords(SettingKeywords, total=False):
    """The keywords of `session`, for type checkers; a test compares them with those of `train`."""

    rounds: Required[int]
    algorithm: Required[Algorithm]
    privacy: Privacy | None
    loss: Callable[..., Any] | None
    metric: Callable[..., Any] | None
    out: PathLike | None
    ledger: PathLike | None
    resume: PathLike | None
    key_dir: PathLike | None
    data_dir: PathLike | None
    accept_data_ranges: bool
    as_far_as_it_goes: bool


def session(model: nn.Module | AnyModel, clients: Task | AnyTask, **arguments: Unpack[SessionKeywords]) -> Session[Run]:
    """Open a run as a loop of your own: each step of the iteration plays one round, and yields its record.

    The rounds are those of `train`, bit for bit. The loop may be left at any time, and the run resumed by either.
    A run that is left before its last round is certified at all its planned rounds, because what its caller saw may be
    the reason. A ledger that other runs share must be a filter, which stays sound however a run is cut short.

    Args:
        model: The module to train, or a model's record, as for `train`.
        clients: The clients' data, as for `train`. Arrays are copied, so that the loop can't change them.
        **arguments: All other arguments of `train`, without `progress`.

    Returns:
        The session: an iterator and a context manager. Its `run` is what `train` returns.

    Raises:
        InvalidInput: Something doesn't fit together; the message says what to do. Nothing was written.
        BudgetRefused: The noise can't keep the promise, or the ledger can't pay for all rounds.

    Example:
        >>> with discreet.session(net, clients, rounds=60, algorithm=algorithm, privacy=privacy) as rounds:
        ...     for record in rounds:
        ...         if record.get("evaluation", {}).get("accuracy", 0) > 0.9:
        ...             break
        >>> print(rounds.run.guarantee)
    """
    return _open_session(model, clients, is_stop_free=True, **arguments)


def _open_session(
    model: nn.Module | AnyModel,
    clients: Task | AnyTask,
    *,
    rounds: int,
    algorithm: Algorithm,
    privacy: Privacy | None = None,
    loss: Callable[..., Any] | None = None,
    metric: Callable[..., Any] | None = None,
    out: PathLike | None = None,
    ledger: PathLike | None = None,
    resume: PathLike | None = None,
    key_dir: PathLike | None = None,
    data_dir: PathLike | None = None,
    accept_data_ranges: bool = False,
    as_far_as_it_goes: bool = False,
    is_stop_free: bool = False,
    **settings: Unpack[SettingKeywords],
) -> Session[Run]:
    """Start or resume the run of `train` and of `session`, which describe the arguments."""
    run_settings = Settings(rounds=rounds, **settings)
    keys = _optional_path(key_dir)
    before = None if resume is None else _open_for_resume(Path(resume), keys)
    if before is None or run_settings.seed is not None:
        key = _choose_key(run_settings.seed)
    else:
        key = run_keys.load_key(before.identity.id, keys)
    paths = Paths.default(data=_optional_path(data_dir), trust=trust_remembered(TRUST_REMEDY))
    if isinstance(clients, Task):
        task = clients
    else:
        source: AnyTask = from_plain(AnyTask, clients)  # wraps a task of the user's own
        task = load_task(source, key.generator(Purpose.TASK), paths, None if privacy is None else privacy.person)
    if is_stop_free:
        task = copy.deepcopy(task)  # the caller may hold its arrays, and change them between two rounds
    if isinstance(model, nn.Module):
        module = model
    else:
        module = job_builder.build_model(model, task, paths, key.generator(Purpose.MODEL))
    job = job_builder.build_job_from_objects(
        task,
        module,
        {"loss": loss, "metric": metric},
        key=key,
        algorithm=algorithm,
        privacy=privacy,
        settings=run_settings,
    )
    accepted = accept_data_ranges or _has_accepted(before)
    job = replace(job, accept_data_ranges=accepted, as_far_as_it_goes=as_far_as_it_goes)
    if before is None:
        path = Path(out) if out is not None else new_run_path(task.name)
        loop = training_loop.start_loop(job, path, _optional_path(ledger), keys, is_stop_free=is_stop_free)
    else:
        loop = training_loop.resume_loop(job, before, keys, is_stop_free=is_stop_free)

    def conclude(outcome: Outcome) -> Run:
        write_page(outcome.record.path)
        return run_of_outcome(outcome, job.model.module_with_params(job.model.params))

    return Session(loop, conclude, is_open=is_stop_free)


def load(
    directory: PathLike,
    module: nn.Module | None = None,
    data_dir: PathLike | None = None,
    *,
    trust: bool = False,
) -> Run:
    """Load a run from its directory. This runs no code that the run names; only its `model` needs it, when it is used.

    Args:
        directory: The run directory.
        module: The module that was trained, for a run that was started from Python. Other runs build it again.
        data_dir: The folder of downloaded data sets.
        trust: Whether `model` may run the Python files that the run's experiment names. Without it, only code that
            `discreet trust` has remembered runs.

    Returns:
        The run, as `train` returns it.

    Raises:
        InvalidInput: The directory holds no run, or the run has no model yet.

    Example:
        >>> run = discreet.load("runs/digits-20261116-120000-1a2b")
        >>> print(run.guarantee)
    """
    record = RunRecord.open(Path(directory))
    record.load_model()  # refuse a run that has no model yet
    outcome = record.read_outcome()
    cards = tuple(from_plain(Guarantee, card) for card in outcome["guarantees"])
    return Run(
        record.path,
        outcome["rounds"],
        outcome["metrics"],
        cards,
        outcome["stopped"],
        module,
        _optional_path(data_dir),
        Trust.all_code() if trust else trust_remembered(LOAD_REMEDY),
    )


def prepare_job(source: Source, *, accept_data_ranges: bool = False) -> Job:
    """Build the job of an experiment, or say what is wrong with it; nothing is written."""
    ready = job_builder.build_job(source, _choose_key(source.experiment.seed))
    return replace(ready, accept_data_ranges=accept_data_ranges)


def prepare_terms(source: Source) -> Terms:
    """Return the terms of an experiment without running its own model, loss and metric; nothing is written."""
    return job_builder.build_terms(source, _choose_key(source.experiment.seed))


def reopen_run(
    directory: Path, key_dir: Path | None, data_dir: Path | None = None, trust: Trust | None = None
) -> tuple[Job, RunRecord]:
    """Open a stopped run of an experiment's file, and build its job again.

    Args:
        directory: The run directory.
        key_dir: The folder of the run's key. None for that in the user's state folder.
        data_dir: The folder of downloaded data sets.
        trust: Which code that the experiment names may run. None for nothing.
    """
    record = RunRecord.open(directory)
    if record.identity.folder is None:
        raise InvalidInput(f"{directory} was made from Python.", fix="Resume it with discreet.train(..., resume=...).")
    _refuse_finished(record, key_dir)
    check_version(record)
    experiment = _read_experiment(record)
    key = run_keys.load_key(record.identity.id, key_dir) if experiment.seed is None else _choose_key(experiment.seed)
    paths = Paths.default(Path(record.identity.folder), data_dir, trust)
    source = Source(experiment, record.read_text("experiment.toml"), paths)
    ready = job_builder.build_job(source, key)
    return replace(ready, accept_data_ranges=_has_accepted(record)), record


def _open_for_resume(directory: Path, key_dir: Path | None) -> RunRecord:
    """Open a stopped run, or refuse one that is finished or that another version started."""
    record = RunRecord.open(directory)
    _refuse_finished(record, key_dir)
    check_version(record)
    return record


def _refuse_finished(record: RunRecord, key_dir: Path | None) -> None:
    if record.is_finished():
        run_keys.delete_key(record.identity.id, key_dir)
        raise InvalidInput(f"The run in {record.path} is finished.", fix="Start a new run to train longer.")


def run_of_outcome(outcome: Outcome, module: nn.Module | None = None) -> Run:
    """Return the run that ended in this way."""
    return Run(outcome.record.path, outcome.completed, outcome.metrics, outcome.guarantees, outcome.stopped, module)


def new_run_path(name: str) -> Path:
    """Return a new path for a run directory: in runs/, named by the task and the time."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}-{token_hex(2)}"


def write_page(directory: Path) -> Path:
    """Write report.html into a run directory, and return its path."""
    from discreet.report import run_page  # training itself needs no page

    return run_page.write(directory)


def _show_progress(
    rounds: int, budget: float | None, console: Console, wanted: bool | None
) -> AbstractContextManager[training_loop.Watch]:
    if wanted or (wanted is None and (console.is_terminal or console.is_jupyter)):
        return progress.progress_bar(rounds, 0, budget, console)
    return progress.no_progress()


def _rebuild_module(record: RunRecord, data_dir: Path | None, trust: Trust) -> nn.Module:
    if record.identity.folder is None:
        raise InvalidInput(
            f"{record.path} was made from Python, and only that program knows its module.",
            fix="Pass it: discreet.load(directory, module=...).",
        )
    check_model_files(record)
    experiment = _read_experiment(record)
    generator = torch.Generator()  # any will do: the weights come from the record
    paths = Paths.default(Path(record.identity.folder), data_dir, trust)
    columns = record.read_columns()
    needless = ("algorithm", "metric") if columns is None else ("algorithm", "metric", "task")
    experiment = load_user_parts(experiment, paths.folder, trust, skip=needless)
    task = experiment.load_task(generator, paths) if columns is None else blank_task(columns)
    return job_builder.build_model(experiment.model, task, paths, generator)


def _has_accepted(record: RunRecord | None) -> bool:
    """Whether the user accepted ranges taken from the data when the run was started."""
    return record is not None and record.identity.data_ranges


def _read_experiment(record: RunRecord) -> Experiment:
    return toml_document.build_record(
        Experiment, toml_document.parse_toml(record.read_text("resolved.toml"), "resolved.toml")
    )


def _choose_key(seed: int | None) -> RunKey:
    return RunKey.generate() if seed is None else RunKey.from_seed(seed)


def _optional_path(path: PathLike | None) -> Path | None:
    return None if path is None else Path(path)
