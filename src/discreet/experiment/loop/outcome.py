"""How a run ended, and what it certifies."""

from dataclasses import dataclass
from typing import Any

from discreet.algorithms.algorithm import ServerState
from discreet.errors import BudgetRefused
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `stopped` says why it ended early, and `refused` whether the budget was the reason."""

    record: RunRecord
    completed: int
    state: ServerState
    stopped: str | None
    is_refused: bool
    guarantees: tuple[Guarantee, ...]
    metrics: dict[str, Any]

    @property
    def exit_code(self) -> int:
        if not self.stopped:
            return 0
        return BudgetRefused.exit_code if self.is_refused else 1

    def summary(self) -> dict[str, Any]:
        """As plain data, with the promise's own card alone."""
        first = self.guarantees[0] if self.guarantees else None
        return {
            "rounds": self.completed,
            "epsilon": first.epsilon if first else None,
            "delta": first.delta if first else None,
            "metrics": self.metrics,
            "stopped": self.stopped,
        }
