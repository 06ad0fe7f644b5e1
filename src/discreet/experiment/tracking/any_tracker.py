"""Every kind of tracker that an experiment file or `train` can name."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field

from discreet.errors import InvalidInput
from discreet.experiment.tracking.mlflow_log import PURPOSE as FOR_MLFLOW
from discreet.experiment.tracking.mlflow_log import MlflowLog
from discreet.experiment.tracking.number_files import CsvFile, JsonLinesFile
from discreet.experiment.tracking.number_writer import NumberWriter, TrackedRun
from discreet.experiment.tracking.tensorboard_log import PURPOSE as FOR_TENSORBOARD
from discreet.experiment.tracking.tensorboard_log import TensorBoardLog
from discreet.extras import is_installed, missing_library
from discreet.part import Flag, from_plain, part


@part
class CsvTracker:
    """One CSV file with a line for each round.

    Attributes:
        to: The file. By default metrics.csv in the run directory.
        uncovered: Whether to write numbers that no guarantee covers. Their names begin with `uncovered/`.
    """

    kind: Literal["csv"] = "csv"
    to: str | None = None
    uncovered: Flag = True

    def check(self, *, is_new: bool) -> None:
        """Refuse what can't be written, before a run begins; `is_new` says that the run is not resumed."""
        _check_file(self.to, is_new=is_new)

    def open(self, run: TrackedRun) -> NumberWriter:
        """Open the tracker for a run."""
        return CsvFile(_path(self.to, run, "metrics.csv"), run)


@part
class JsonLinesTracker:
    """One file with a JSON object for each round.

    Attributes:
        to: The file. By default metrics.jsonl in the run directory.
        uncovered: Whether to write numbers that no guarantee covers. Their names begin with `uncovered/`.
    """

    kind: Literal["json_lines"] = "json_lines"
    to: str | None = None
    uncovered: Flag = True

    def check(self, *, is_new: bool) -> None:
        """Refuse what can't be written, before a run begins; `is_new` says that the run is not resumed."""
        _check_file(self.to, is_new=is_new)

    def open(self, run: TrackedRun) -> NumberWriter:
        """Open the tracker for a run."""
        return JsonLinesFile(_path(self.to, run, "metrics.jsonl"), run)


@part
class TensorBoardTracker:
    """Scalars for TensorBoard. It needs `pip install discreet[tensorboard]`.

    Attributes:
        to: The folder above those of the runs. By default the run directory itself.
        uncovered: Whether to write numbers that no guarantee covers. Their names begin with `uncovered/`.
    """

    kind: Literal["tensorboard"] = "tensorboard"
    to: str | None = None
    uncovered: Flag = True

    def check(self, *, is_new: bool) -> None:
        """Refuse what can't be written, before a run begins; `is_new` says that the run is not resumed."""
        _check_library("tensorboard", FOR_TENSORBOARD)

    def open(self, run: TrackedRun) -> NumberWriter:
        """Open the tracker for a run."""
        folder = run.directory / "tensorboard" if self.to is None else Path(self.to) / run.directory.name
        return TensorBoardLog(folder, run)


@part
class MlflowTracker:
    """A run of MLflow. It needs `pip install discreet[mlflow]`.

    Attributes:
        to: The address of the tracking server, or of a database such as sqlite:///mlflow.db. By default MLflow's own,
            from its variable MLFLOW_TRACKING_URI.
        experiment: The name of the experiment in MLflow, which is created if there is none.
        uncovered: Whether to write numbers that no guarantee covers. Their names begin with `uncovered/`.
    """

    kind: Literal["mlflow"] = "mlflow"
    to: str | None = None
    experiment: str = "discreet"
    uncovered: Flag = True

    def __post_init__(self) -> None:
        if self.to is not None and urlsplit(self.to).password is not None:
            raise InvalidInput(
                "The address of MLflow must not hold a password, since the run directory keeps it.",
                fix="Use MLflow's own variables, MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD.",
            )

    def check(self, *, is_new: bool) -> None:
        """Refuse what can't be written, before a run begins; `is_new` says that the run is not resumed."""
        _check_library("mlflow", FOR_MLFLOW)

    def open(self, run: TrackedRun) -> NumberWriter:
        """Open the tracker for a run."""
        return MlflowLog(self.to, self.experiment, run)


AnyTracker: TypeAlias = Annotated[
    CsvTracker | JsonLinesTracker | TensorBoardTracker | MlflowTracker, Field(discriminator="kind")
]


def parse_tracker(text: str) -> AnyTracker:
    """Return the tracker that a command line names: `tensorboard`, or with its place `csv=metrics.csv`.

    Raises:
        InvalidInput: There is no such kind.
    """
    kind, equals, place = text.partition("=")
    if equals and not place:
        raise InvalidInput(f"--track needs KIND or KIND=PLACE, and got {text!r}.", fix="For example: --track csv")
    tracker: AnyTracker = from_plain(AnyTracker, {"kind": kind, "to": place or None})
    return tracker


def _path(to: str | None, run: TrackedRun, name: str) -> Path:
    return run.directory / name if to is None else Path(to)


def _check_file(to: str | None, *, is_new: bool) -> None:
    """Refuse a file that another run has written, or whose folder is missing."""
    if to is None:
        return
    path = Path(to)
    if not path.parent.is_dir():
        raise InvalidInput(f"The tracker can't write {path}: there is no folder {path.parent}.")
    if path.is_dir() or (is_new and path.exists()):
        raise InvalidInput(
            f"The tracker would write {path}, which exists already.", fix="Name another file, or move this one away."
        )


def _check_library(library: str, purpose: str) -> None:
    if not is_installed(library):
        raise missing_library(library, purpose)
