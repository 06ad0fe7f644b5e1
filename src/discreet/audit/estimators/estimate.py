"""What an estimator is given and what it returns: scored canaries, and a lower confidence bound on ε."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput

Array = NDArray[np.float64]
Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class ScoredCanaries:
    """The canaries of one or several runs.

    Attributes:
        scores: A canary's score: the higher, the more likely it was present.
        present: Which canaries were present, each by an independent fair coin.
        runs: Which run each canary was in.
    """

    scores: Array
    present: Coins
    runs: NDArray[np.int64]

    @classmethod
    def of_one_run(cls, scores: Array, present: Coins) -> "ScoredCanaries":
        """Return the canaries of a single run."""
        return cls(scores, present, np.zeros(len(scores), dtype=np.int64))

    def __post_init__(self) -> None:
        if not len(self.scores) == len(self.present) == len(self.runs):
            raise InvalidInput(
                f"Every canary needs a score, a coin and a run, and got {len(self.scores)} scores, "
                f"{len(self.present)} coins and {len(self.runs)} runs."
            )
        if not np.isfinite(self.scores).all():
            raise InvalidInput("Every canary's score must be a finite number, and some are not.")

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True)
class Estimate:
    """A lower confidence bound on ε.

    Attributes:
        estimator: Name of the estimator.
        lower_bound: With probability `confidence` or more, the true ε at `delta` is not below it.
        confidence: The probability that the bound holds, if what `assumes` says is true.
        delta: The δ of the bound.
        canaries: Number of canaries.
        present: Number of canaries that were present.
        assumes: What the bound rests on, in a sentence. Empty if it rests on nothing but the coins.
        points: Measured points (ε, δ): at this δ, the true ε is not below that ε. They hold together.
        details: Numbers of the estimator, by name.
    """

    estimator: str
    lower_bound: float
    confidence: float
    delta: float
    canaries: int
    present: int
    assumes: str = ""
    points: tuple[tuple[float, float], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def check_levels(delta: float, confidence: float) -> None:
    """Refuse a δ or a confidence that is not between 0 and 1."""
    if not 0 <= delta < 1:
        raise InvalidInput(f"delta must be at least 0 and below 1, and got {delta}.")
    if not 0.5 <= confidence < 1:
        raise InvalidInput(f"confidence must be at least 0.5 and below 1, and got {confidence}.", fix="Use 0.95.")
