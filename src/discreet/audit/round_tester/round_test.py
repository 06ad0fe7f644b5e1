"""The result of testing one round against a claim."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from discreet.audit.round_tester.neighbours import Neighbours
from discreet.audit.round_tester.repetition_player import Sight
from discreet.privacy.release import Relation, Unit, View
from discreet.privacy.wording import compact, unit_name


@dataclass(frozen=True)
class RoundTest:
    """What was measured of one release of a round.

    Attributes:
        unit: What neighbours differ in.
        relation: How they differ.
        view: Who sees the release.
        sees: What the observer sees: every upload, the sum, or the model.
        claimed_epsilon: The ε that was claimed at `delta`.
        lower_bound: The ε that the measurement proves at `delta`; 0 if it proves none.
        delta: The δ of both.
        claimed_advantage: The most that P(S) − Q(S) may be by the claim, for any set S.
        advantage: What P(S) − Q(S) was measured to be at least, for some set S.
        violated: Whether the measurement contradicts the claim, at its δ or anywhere on its curve.
        confidence: The probability with which a claim that holds is not contradicted, all tests together.
        neighbours: The pair of data sets that was told apart best.
        decided_by: The set that told them apart.
        repetitions: Rounds that were played on each of the two data sets in the final test.
        seconds: How long search and test took.
    """

    unit: Unit
    relation: Relation
    view: View
    sees: Sight
    claimed_epsilon: float
    lower_bound: float
    delta: float
    claimed_advantage: float
    advantage: float
    violated: bool
    confidence: float
    neighbours: Neighbours
    decided_by: str
    repetitions: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return asdict(self) | {"neighbours": self.neighbours.describe()}

    def __str__(self) -> str:
        verdict = "is VIOLATED" if self.violated else "is not contradicted"
        return (
            f"{unit_name(self.unit)} against {self.view} ({self.sees}): claimed ε = {compact(self.claimed_epsilon, 4)} "
            f"at δ = {compact(self.delta)} {verdict}; measured at least {compact(self.lower_bound, 4)} "
            f"in {self.repetitions:,} repetitions"
        )
