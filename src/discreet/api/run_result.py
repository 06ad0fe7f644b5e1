"""A run that was trained: its model, guarantees and metrics, from its directory."""

import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any

import torch
from torch import nn

from discreet.algorithms.input_scale import CENTRE, SPREAD, InputScale
from discreet.api.experiment_jobs import read_experiment
from discreet.data.tables.table_columns import Predictions
from discreet.data.tasks.task import blank_task
from discreet.errors import InvalidInput
from discreet.experiment.loop import job_builder
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.run_directory.resume_check import check_model_files
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.models.standardised_model import standardise_inputs
from discreet.models.table_prediction import find_rows, predict_rows
from discreet.part import from_plain
from discreet.paths import PathLike, Paths, optional_path
from discreet.privacy.guarantee import Guarantee
from discreet.trust import Trust
from discreet.trust_store import trust_remembered
from discreet.user_part import load_user_parts

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
        validation: The evaluation of the last model on validation data. No guarantee covers it. Empty if there is none.
    """

    directory: Path
    rounds: int
    metrics: dict[str, Any]
    guarantees: tuple[Guarantee, ...]
    stopped: str | None = None
    module: nn.Module | None = field(default=None, repr=False)
    data_dir: Path | None = field(default=None, repr=False)
    trust: Trust = field(default_factory=Trust.no_code, repr=False)
    validation: dict[str, Any] = field(default_factory=dict)

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
        optional_path(data_dir),
        Trust.all_code() if trust else trust_remembered(LOAD_REMEDY),
        outcome.get("validation", {}),
    )


def run_of_outcome(outcome: Outcome, module: nn.Module | None = None) -> Run:
    """Return the run that ended in this way."""
    return Run(
        outcome.record.path,
        outcome.completed,
        outcome.metrics,
        outcome.guarantees,
        outcome.stopped,
        module,
        validation=outcome.validation,
    )


def new_run_path(name: str) -> Path:
    """Return a new path for a run directory: in runs/, named by the task and the time."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}-{token_hex(2)}"


def write_page(directory: Path) -> Path:
    """Write report.html into a run directory, and return its path."""
    from discreet.report import run_page  # training itself needs no page

    return run_page.write(directory)


def _rebuild_module(record: RunRecord, data_dir: Path | None, trust: Trust) -> nn.Module:
    if record.identity.folder is None:
        raise InvalidInput(
            f"{record.path} was made from Python, and only that program knows its module.",
            fix="Pass it: discreet.load(directory, module=...).",
        )
    check_model_files(record)
    experiment = read_experiment(record)
    generator = torch.Generator()  # any will do: the weights come from the record
    paths = Paths.default(Path(record.identity.folder), data_dir, trust)
    columns = record.read_columns()
    needless = ("algorithm", "metric") if columns is None else ("algorithm", "metric", "task")
    experiment = load_user_parts(experiment, paths.folder, trust, skip=needless)
    task = experiment.load_task(generator, paths) if columns is None else blank_task(columns)
    return job_builder.build_model(experiment.model, task, paths, generator)
