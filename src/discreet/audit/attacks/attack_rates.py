"""How well scores tell members from others: the ROC curve, its area, and exact intervals at small false-alarm rates."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from discreet.audit.round_tester.binomial_bounds import lower_bound, upper_bound
from discreet.privacy.guarantee import FALSE_ALARMS

Scores: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

CONFIDENCE = 0.95
DRAWN_POINTS = 40  # of a curve
FEWEST_ALARMS = 5  # from which on a curve is drawn: fewer say little


@dataclass(frozen=True)
class AttackRate:
    """What an attack recognises at a rate of false alarms.

    Attributes:
        false_positive_rate: The rate of false alarms that was allowed.
        false_positives: False alarms at the threshold, at most that share of the `negatives`.
        negatives: Pairs of a model and a unit that it was not trained on.
        true_positives: Members that the threshold recognises.
        positives: Pairs of a model and a unit that it was trained on.
    """

    false_positive_rate: float
    false_positives: int
    negatives: int
    true_positives: int
    positives: int

    @property
    def true_positive_rate(self) -> float:
        """The share of members that are recognised."""
        return self.true_positives / self.positives

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return Clopper and Pearson's interval of the true positive rate, as if all pairs were independent."""
        return clopper_pearson(self.true_positives, self.positives, confidence)

    def largest_false_positive_rate(self, confidence: float = CONFIDENCE) -> float:
        """Return Clopper and Pearson's upper end of the rate of false alarms at the threshold."""
        return clopper_pearson(self.false_positives, self.negatives, confidence)[1]


@dataclass(frozen=True)
class Roc:
    """Scores as a ROC curve, from the strictest threshold to the loosest.

    Attributes:
        false_positives: Number of false alarms at each threshold, starting at 0.
        true_positives: Number of members recognised at each threshold.
    """

    false_positives: Scores
    true_positives: Scores

    @classmethod
    def from_scores(cls, scores: Scores, members: Flags) -> "Roc":
        """Return the curve of scores that are larger for members. Equal scores share a threshold."""
        order = np.argsort(-scores, kind="stable")
        hits = members[order].astype(np.float64)
        last_of_ties = np.append(np.diff(scores[order]) != 0, True)
        true, false = np.cumsum(hits)[last_of_ties], np.cumsum(1 - hits)[last_of_ties]
        return cls(np.append(0.0, false), np.append(0.0, true))

    @property
    def area(self) -> float:
        """The area under the curve: the probability that a member has a larger score than another unit."""
        widths = np.diff(self.false_positives) / self.false_positives[-1]
        heights = (self.true_positives[1:] + self.true_positives[:-1]) / 2 / self.true_positives[-1]
        return float((widths * heights).sum())

    @property
    def fewest_alarms(self) -> float:
        """The smallest rate of false alarms at which the curve is drawn."""
        return smallest_drawn_rate(int(self.false_positives[-1]))

    def rate_at(self, false_positive_rate: float) -> AttackRate:
        """Return what is recognised by the loosest threshold with at most this rate of false alarms."""
        negatives, positives = int(self.false_positives[-1]), int(self.true_positives[-1])
        allowed = np.floor(false_positive_rate * negatives + 1e-9)
        place = int(np.searchsorted(self.false_positives, allowed, side="right")) - 1
        false, true = int(self.false_positives[place]), int(self.true_positives[place])
        return AttackRate(false_positive_rate, false, negatives, true, positives)

    def rates(self) -> list[AttackRate]:
        """Return what is recognised at the rates of false alarms that the guarantee card names."""
        return [self.rate_at(alarms) for alarms in FALSE_ALARMS]

    def points(self) -> list[tuple[float, float]]:
        """Return some points of the curve, evenly on a logarithmic axis, from a few false alarms to all."""
        negatives = self.false_positives[-1]
        alarms = np.unique(np.round(np.geomspace(min(FEWEST_ALARMS, negatives), negatives, DRAWN_POINTS)))
        found = [self.rate_at(count / negatives) for count in alarms]
        return [(float(count / negatives), rate.true_positive_rate) for count, rate in zip(alarms, found, strict=True)]


def smallest_drawn_rate(negatives: int) -> float:
    """Return the smallest rate of false alarms among `negatives` at which a curve is drawn."""
    return min(FEWEST_ALARMS / max(1, negatives), 1.0)


def clopper_pearson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a rate, which contains it with at least this confidence."""
    outside = (1 - confidence) / 2
    return lower_bound(successes, trials, outside), upper_bound(successes, trials, outside)
