"""How a run ended, and what it certifies."""

from dataclasses import dataclass
from typing import Any

from discreet.algorithms.algorithm import ServerState
from discreet.errors import BudgetRefused
from discreet.experiment.run_directory.run_record import Record
from discreet.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `stopped` says why it ended early, and `refused` whether the budget was the reason."""

    record: Record
    done: int
    state: ServerState
    stopped: str | None
    refused: bool
    guarantees: tuple[Guarantee, ...]
    metrics: dict[str, Any]

    @property
    def exit_code(self) -> int:
        if not self.stopped:
            return 0
        return BudgetRefused.exit_code if self.refused else 1

    def brief(self) -> dict[str, Any]:
        """As plain data, with the promise's own card alone."""
        first = self.guarantees[0] if self.guarantees else None
        return {
            "rounds": self.done,
            "epsilon": first.epsilon if first else None,
            "delta": first.delta if first else None,
            "metrics": self.metrics,
            "stopped": self.stopped,
        }
