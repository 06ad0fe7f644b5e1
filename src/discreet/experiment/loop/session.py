"""A run as an iterator over its rounds, for people who write their own loops."""

import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from torch import nn

from discreet.algorithms.input_scale import InputScale
from discreet.errors import InvalidInput
from discreet.experiment.loop.callbacks import read_only
from discreet.experiment.loop.interrupt import StopRequest
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.loop.run_loop import RunLoop
from discreet.models.standardised_model import standardise_inputs

Result = TypeVar("Result")


class Session(Iterator[Mapping[str, Any]], Generic[Result]):
    """A run whose rounds the caller plays: each step of the iteration is one round, and yields its record.

    A record is read-only, and holds what rounds.jsonl holds of the round. The loop may be left at any time, by `break`,
    by an error or by Ctrl-C: the run directory then has a model, a card and a key to resume with. Only the file of a
    run that is not left by `with`, and is still referred to, is written later: when Python drops the session or exits.

    What its caller saw may be why a loop is left before the last round, so its card counts all planned rounds.
    """

    def __init__(self, loop: RunLoop, conclude: Callable[[Outcome], Result]) -> None:
        """Take a run that is ready.

        Args:
            loop: The run.
            conclude: Makes the result of the session from the outcome of the run.
        """
        self._loop = loop
        self._result: Result | None = None
        self._process = os.getpid()
        self._close = weakref.finalize(self, _close, loop, conclude, self._process)

    def __next__(self) -> Mapping[str, Any]:
        if not self._close.alive:
            raise StopIteration
        if os.getpid() != self._process:
            raise InvalidInput(
                f"The session of {self.directory} belongs to the process that opened it.", fix="Play its rounds there."
            )
        try:
            with self._loop.catch_interrupts():
                line = self._loop.play_round()
        except BaseException:
            self.close()
            raise
        if line is None:
            self.close()
            raise StopIteration
        record: Mapping[str, Any] = read_only(line)
        return record

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def directory(self) -> Path:
        """The run directory."""
        return self._loop.record.path

    @property
    def model(self) -> nn.Module:
        """A copy of the model after the last completed round, in evaluation mode."""
        state = self._loop.position.state
        module = self._loop.job.model.module_with_params(state.params)
        return standardise_inputs(module, InputScale.find(state.input_scale))

    @property
    def run(self) -> Result:
        """The run, as `train` returns it, once the session has ended.

        Raises:
            InvalidInput: The session goes on, or was ended by an error within a round.
        """
        if self._result is None:
            raise InvalidInput(
                f"The run in {self.directory} is unfinished.",
                fix=f"End the loop first, or resume it: {self._loop.record.resume_command}",
            )
        return self._result

    def checkpoint(self) -> None:
        """Save the state after the last completed round now, whatever `checkpoint_every` says."""
        self._loop.checkpoint()

    def stop(self) -> None:
        """End the session before its next round."""
        self._loop.stop()

    def close(self) -> None:
        """End the session now: write the model and the card of a run that is stopped here. Later calls do nothing."""
        self._result = self._close() or self._result

    def catch_interrupts(self) -> AbstractContextManager[StopRequest]:
        """Within this block, Ctrl-C and SIGTERM end the session after the round, as they do while a round is played."""
        return self._loop.catch_interrupts()


def _close(loop: RunLoop, conclude: Callable[[Outcome], Result], process: int) -> Result | None:
    """Finish a run and return the result; None after an error within a round. A forked process leaves it alone."""
    if os.getpid() != process:
        return None
    with loop:
        if not loop.is_ready:
            return None
        if loop.has_next_round:
            loop.stop()
        return conclude(loop.finish())
