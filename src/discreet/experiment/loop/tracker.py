"""A tracker as a callback: it passes on the numbers of each round, and can neither stop nor lose a run."""

import warnings
from pathlib import Path
from typing import Any, Self

from discreet.experiment.loop.callbacks import Callback, Record
from discreet.experiment.loop.run_guarantees import card_text
from discreet.experiment.tracking.any_tracker import AnyTracker
from discreet.experiment.tracking.number_writer import NumberWriter, TrackedRun, round_numbers
from discreet.part import from_plain


class Tracker(Callback):
    """Passes the numbers of each round to a file, to TensorBoard or to MLflow.

    The names of numbers that no guarantee covers begin with `uncovered/`. An error of the tracker gets a warning, and
    the run goes on without it.
    """

    may_stop = False

    def __init__(self, record: AnyTracker, *, is_new: bool = True) -> None:
        """Take a tracker's record, and refuse what can't be written before a run begins.

        Args:
            record: The kind of tracker, and where it writes.
            is_new: Whether the run begins. A resumed run goes on in the file that it wrote.

        Raises:
            MissingExtra: Its library is not installed.
            InvalidInput: Its file exists already, or has no folder.
        """
        record.check(is_new=is_new)
        self._record = record
        self._writer: NumberWriter | None = None

    @property
    def title(self) -> str:
        """Its name in warnings."""
        return f"tracker {self._record.kind}"

    def __repr__(self) -> str:
        return f"Tracker({self._record})"

    def round_begun(self, record: Record) -> None:
        """Open the tracker before the first round."""
        if self._writer is None:
            run = TrackedRun(Path(record["directory"]), record["round"], record["rounds"])
            self._writer = self._record.open(run)

    def round_ended(self, record: Record) -> None:
        """Pass on the numbers of the round."""
        if self._writer is not None:
            self._writer.write(record["round"], round_numbers(record, uncovered=self._record.uncovered))

    def finished(self, run: Any) -> None:
        """Pass on what is certified, in the words of the card."""
        if self._writer is not None:
            self._writer.finish({"guarantee": card_text(list(run.guarantees))})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the tracker. An error gets a warning: the run itself is kept."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            writer.close()
        except Exception as error:  # noqa: BLE001 - of any library, and after the last round
            message = f"The {self.title} could not be closed ({type(error).__name__}: {error})."
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def tracker(kind: str, **fields: Any) -> Tracker:
    """Return a tracker for the `callbacks` of `train`. The setting `track` of `train` and of files does the same.

    Args:
        kind: "csv", "json_lines", "tensorboard" or "mlflow".
        **fields: Its other fields: `to`, where it writes; `uncovered`, False to write only what the guarantee covers;
            and `experiment`, for MLflow.

    Returns:
        A callback that can't stop the run.

    Raises:
        InvalidInput: There is no such kind or field, or the file exists already.
        MissingExtra: TensorBoard or MLflow is not installed.

    Example:
        >>> import discreet
        >>> tracker = discreet.tracker("csv", to="metrics.csv", uncovered=False)
        >>> # discreet.train(..., callbacks=[tracker])
    """
    return Tracker(from_plain(AnyTracker, {"kind": kind, **fields}))
