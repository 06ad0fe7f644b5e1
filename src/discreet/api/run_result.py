"""A run that was trained: its model, guarantees and metrics, from its directory."""

import copy
import math
import warnings
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn

from discreet.algorithms.input_scale import CENTRE, SPREAD, InputScale
from discreet.api.argument_checks import check_module, check_weights, describe
from discreet.api.rebuilt_model import rebuild_inputs, rebuild_module
from discreet.audit.audit_record import AuditRecord, read_audits
from discreet.data.tables.table_columns import Predictions
from discreet.errors import InvalidInput
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.run_directory.run_files import PROFILE, RunFiles, as_numbers
from discreet.experiment.run_directory.run_record import EXPORTED, RunRecord
from discreet.models.export.model_file import model_bytes, table_model_bytes
from discreet.models.export.safetensors_file import safetensors_bytes
from discreet.models.standardised_model import standardise_inputs
from discreet.models.table_prediction import find_rows, predict_rows
from discreet.part import Flag, check_value, from_plain
from discreet.paths import PathLike, optional_path, to_path, write_new_file
from discreet.privacy.guarantee import Guarantee
from discreet.trust import Trust
from discreet.trust_store import trust_remembered

ModelFormat: TypeAlias = Literal["onnx", "torchscript", "safetensors"]

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
    metrics: dict[str, float]
    guarantees: tuple[Guarantee, ...]
    stopped: str | None = None
    module: nn.Module | None = field(default=None, repr=False)
    data_dir: Path | None = field(default=None, repr=False)
    trust: Trust = field(default_factory=Trust.no_code, repr=False)
    validation: dict[str, float] = field(default_factory=dict)

    @property
    def guarantee(self) -> Guarantee | None:
        """The promised guarantee; without a promise the first one, and None for a run without privacy."""
        return self.guarantees[0] if self.guarantees else None

    @property
    def audits(self) -> list[AuditRecord]:
        """What `discreet.audit_run` and `discreet audit` measured of this run, the newest last."""
        return read_audits(self.directory)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The record of every round, in order. A guarantee covers only its `epsilon`."""
        rounds = RunRecord.open(self.directory).read_rounds()
        return [
            record | {name: as_numbers(record[name]) for name in ("evaluation", "validation") if record.get(name)}
            for record in rounds
        ]

    @property
    def profile(self) -> dict[str, Any] | None:
        """Where the time of a round went, as profile.json holds it. None without `profile=True`."""
        profile: dict[str, Any] | None = RunFiles(self.directory).json(PROFILE)
        return profile

    @cached_property
    def model(self) -> nn.Module:
        """A plain module with the trained weights, in evaluation mode.

        Raises:
            UntrustedCode: The experiment names Python files that would have to run, and nobody has trusted them.
        """
        record = RunRecord.open(self.directory)
        if self.module is None:
            module = rebuild_module(record, self.data_dir, self.trust)
        else:
            module = copy.deepcopy(self.module)
        weights = record.load_model()
        input_scale = InputScale.find(weights)
        weights = {name: value for name, value in weights.items() if name not in (CENTRE, SPREAD)}
        check_weights(module, weights, self.directory)
        module.load_state_dict(weights)
        return standardise_inputs(module.eval(), input_scale)

    def _repr_html_(self) -> str | None:
        """Return the top of the run's page, for notebooks; None if the directory is no longer there."""
        from discreet.report import notebook_view  # training itself needs no page

        try:
            return notebook_view.render_run(self.directory)
        except InvalidInput:
            return None

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

    def export(self, to: ModelFormat, out: PathLike | None = None, *, inputs: Tensor | None = None) -> Path:
        """Write the model as a file for other programs, by the run directory alone if it was trained on a table.

        Args:
            to: "onnx" or "torchscript", which take the columns of a table in their own units and return what `predict`
                returns; or "safetensors": the weights, with the columns in its metadata.
            out: The file to write, which must not exist. None writes into the run directory.
            inputs: Some inputs of the model, for a run that was started from Python and not on a table: ONNX and
                TorchScript need to know their shape.

        Returns:
            The file that was written.

        Raises:
            InvalidInput: The model can't be exported, or the file exists.
            MissingExtra: A library that ONNX needs is not installed.
            UntrustedCode: The experiment names Python files that would have to run, and nobody has trusted them.

        Example:
            ```python
            discreet.load("runs/visits").export("onnx", "visits.onnx")
            ```
        """
        from discreet.report.model_card import export_facts  # training itself needs no pages

        check_value("to", ModelFormat, to)
        if inputs is not None and not isinstance(inputs, Tensor):
            raise InvalidInput(
                f"inputs must be a tensor, and got {describe(inputs)}.", fix="Pass some rows of test data."
            )
        path = self.directory / EXPORTED[to] if out is None else to_path(out)
        if path.exists():
            raise InvalidInput(f"{path} exists, and is not overwritten.", fix="Name another file.")
        record = RunRecord.open(self.directory)
        columns, facts = record.read_columns(), export_facts(self.directory)
        if to == "safetensors":
            content = safetensors_bytes(record.load_model(), facts)
        elif columns is not None:
            content = table_model_bytes(to, self.model, columns, facts)
        else:
            example = rebuild_inputs(record, self.data_dir, self.trust) if inputs is None else inputs
            content = model_bytes(to, self.model, example, facts)
        write_new_file(path, content)
        return path

    def model_card(self, *, public: bool = False) -> str:
        """Describe the model and its guarantee for whoever gets it, in Markdown.

        Args:
            public: Leave out every number that the guarantee does not cover.

        Returns:
            The text: the model, its inputs and outputs, the guarantee, metrics, and how to use it.

        Example:
            ```python
            Path("MODEL_CARD.md").write_text(discreet.load("runs/visits").model_card(public=True))
            ```
        """
        from discreet.report import model_card  # training itself needs no pages

        return model_card.render(self.directory, public=check_value("public", Flag, public))

    def brief(self, *, public: bool = False) -> Path:
        """Write one page to decide by and to sign, as `discreet report --brief` does.

        Args:
            public: Leave out every number that the guarantee does not cover.

        Returns:
            The file in the run directory: brief.html, or brief-public.html. It prints on one sheet of A4.

        Example:
            ```python
            discreet.load("runs/visits").brief(public=True)
            ```
        """
        from discreet.report import brief_page, run_page  # training itself needs no pages

        check_value("public", Flag, public)
        run_page.write(self.directory, public=public)  # the full card, to which the page links
        return brief_page.write(self.directory, public=public)


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
    if module is not None:
        check_module(module, "module")
    check_value("trust", Flag, trust)
    record = RunRecord.open(to_path(directory))
    record.load_model()  # refuse a run that has no model yet
    outcome = record.read_outcome()
    cards = tuple(from_plain(Guarantee, card) for card in outcome["guarantees"])
    return Run(
        record.path,
        outcome["rounds"],
        as_numbers(outcome["metrics"]),
        cards,
        outcome["stopped"],
        module,
        optional_path(data_dir),
        Trust.all_code() if trust else trust_remembered(LOAD_REMEDY),
        as_numbers(outcome.get("validation", {})),
    )


def run_of_outcome(outcome: Outcome, module: nn.Module | None = None) -> Run:
    """Return the run that ended in this way, and warn if it is complete and its model diverged."""
    metrics = as_numbers(outcome.metrics)
    has_ended = outcome.stopped is None
    if has_ended and outcome.warning is not None and not all(map(math.isfinite, metrics.values())):
        warnings.warn(outcome.warning, RuntimeWarning, stacklevel=2)
    return Run(
        outcome.record.path,
        outcome.completed,
        metrics,
        outcome.guarantees,
        outcome.stopped,
        module,
        validation=as_numbers(outcome.validation),
    )


def new_run_path(name: str) -> Path:
    """Return a new path for a run directory: in runs/, named by the task and the time."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}-{token_hex(2)}"


def write_page(directory: Path) -> Path:
    """Write report.html into a run directory, and profile.svg if its time was measured; return the path of the page."""
    from discreet.report import profile_picture, run_page  # training itself needs no page

    profile_picture.draw_run(directory)
    return run_page.write(directory)
