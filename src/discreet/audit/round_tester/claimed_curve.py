"""What a guarantee allows: the most that any test of two neighbours may achieve, as a curve of ε and δ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidInput
from discreet.privacy import accountant
from discreet.privacy.events import Event
from discreet.privacy.release import Relation

Array = npt.NDArray[np.float64]
PARTS = 8  # of the ε at the stated δ, at which δ is computed


@dataclass(frozen=True)
class ClaimedCurve:
    """Pairs (ε, δ) that are claimed together: P(S) ≤ e^ε·Q(S) + δ for every set S and each pair.

    Attributes:
        epsilon: The ε at `delta`.
        delta: The δ that the claim is stated for.
        epsilons: All ε of the curve.
        deltas: The δ of each.
    """

    epsilon: float
    delta: float
    epsilons: Array = field(repr=False, compare=False)
    deltas: Array = field(repr=False, compare=False)

    @classmethod
    def from_event(cls, event: Event, relation: Relation, delta: float) -> ClaimedCurve:
        """Return the certified curve of an event."""
        epsilon = accountant.epsilon(event, delta, relation)
        if not math.isfinite(epsilon):
            raise InvalidInput("A claim must have a finite ε, and this event has none.", fix="Add noise.")
        epsilons = epsilon * np.arange(int(1.5 * PARTS) + 1) / PARTS
        deltas = np.array([accountant.delta(event, float(each), relation) for each in epsilons])
        deltas[PARTS] = min(deltas[PARTS], delta)
        return cls(epsilon, delta, epsilons, deltas)

    @classmethod
    def from_point(cls, epsilon: float, delta: float) -> ClaimedCurve:
        """Return the claim of one ε at one δ."""
        if not (epsilon >= 0 and 0 <= delta < 1):
            raise InvalidInput(f"A claim is an ε of at least 0 at a δ in [0, 1), and got {epsilon:g} and {delta:g}.")
        return cls(epsilon, delta, np.array([epsilon]), np.array([delta]))

    @property
    def advantage(self) -> float:
        """The most that P(S) − Q(S) may be: (e^ε − 1 + 2δ)/(e^ε + 1) for each pair, the least of them."""
        factors = np.exp(self.epsilons)
        return float(min(1.0, ((factors - 1 + 2 * self.deltas) / (factors + 1)).min()))

    def largest_rate(self, other: Array | float) -> Array:
        """Return the most that P(S) may be where Q(S) is `other`."""
        rates = np.exp(self.epsilons)[:, None] * np.atleast_1d(other) + self.deltas[:, None]
        bound: Array = np.minimum(1.0, rates.min(axis=0))
        return bound
