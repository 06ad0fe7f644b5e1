"""How a run ended, and what it certifies."""

from dataclasses import dataclass, field
from typing import Any

from discreet.algorithms.algorithm import ServerState
from discreet.errors import BudgetRefused
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        record: The run directory.
        completed: Number of completed rounds.
        state: The server's state after them.
        stopped: Why the run ended early. None if it didn't.
        is_refused: Whether it ended early because its budget was spent.
        guarantees: What can be certified, the promised guarantee first.
        metrics: The evaluation of the last model on test data.
        warning: That the model diverged or is hardly better than a constant answer. None if neither is known.
        validation: The evaluation of the last model on validation data. Empty if there is none.
    """

    record: RunRecord
    completed: int
    state: ServerState
    stopped: str | None
    is_refused: bool
    guarantees: tuple[Guarantee, ...]
    metrics: dict[str, Any]
    warning: str | None = None
    validation: dict[str, Any] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """The exit code of the command that ran it."""
        if not self.stopped:
            return 0
        return BudgetRefused.exit_code if self.is_refused else 1

    def summary(self) -> dict[str, Any]:
        """Return the outcome as plain data, with the promised guarantee alone."""
        first = self.guarantees[0] if self.guarantees else None
        return {
            "rounds": self.completed,
            "epsilon": first.epsilon if first else None,
            "delta": first.delta if first else None,
            "certified": first is not None and first.is_certified,
            "metrics": self.metrics,
            **({"validation": self.validation} if self.validation else {}),
            "stopped": self.stopped,
        }
