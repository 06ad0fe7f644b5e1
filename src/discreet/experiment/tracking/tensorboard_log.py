"""The tracker for TensorBoard: scalars by round, and the guarantee as text. It needs `discreet[tensorboard]`."""

from collections.abc import Mapping
from pathlib import Path

from discreet.experiment.tracking.number_writer import TrackedRun
from discreet.extras import import_library

PURPOSE = "The tracker tensorboard"


class TensorBoardLog:
    """An event file in a folder. Rounds that a resumed run plays again replace those that were written before."""

    def __init__(self, folder: Path, run: TrackedRun) -> None:
        import_library("tensorboard", PURPOSE)
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder), purge_step=run.first_round if run.first_round > 1 else None)
        self._last = run.first_round - 1

    def write(self, round: int, numbers: Mapping[str, float]) -> None:
        self._last = round
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, round)
        self._writer.flush()

    def finish(self, facts: Mapping[str, str]) -> None:
        for name, text in facts.items():
            self._writer.add_text(name, text, self._last)

    def close(self) -> None:
        self._writer.close()
