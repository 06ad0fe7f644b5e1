"""Whether two samples tell neighbours apart better than a claim allows: sets are chosen on one half and tested on the
other, by Clopper and Pearson's bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from discreet.audit.round_tester.binomial_bounds import lower_bound, upper_bound
from discreet.audit.round_tester.claimed_curve import Array, ClaimedCurve
from discreet.audit.round_tester.decision_scores import Score, learn_scores

SETS = 9  # that are tested for one pair of neighbours, at most
THRESHOLDS = 160
FLOOR = 0.005  # a claimed δ below it counts as this in a quick comparison, where fewer can't be measured


class DecisionSet(NamedTuple):
    """A set of observations: those whose score is above a threshold, or those whose score is not.

    Attributes:
        score: The score.
        threshold: The threshold.
        above: Whether the set has the scores above it.
        swapped: Whether the set speaks for the second sample.
    """

    score: Score
    threshold: float
    above: bool
    swapped: bool

    def count(self, sample: Array) -> int:
        """Return how many observations are in the set."""
        above = int((self.score.function(sample) > self.threshold).sum())
        return above if self.above else len(sample) - above


class SetTest(NamedTuple):
    """One set on fresh samples.

    Attributes:
        chosen: The set.
        rate: A lower confidence bound on its probability under the neighbour that it speaks for.
        other_rate: An upper confidence bound on its probability under the other neighbour.
        epsilon: The ε that the two rates prove at the claim's δ.
        advantage: The difference of the two rates, at least 0.
        excess: By how much the rate is above all that the claim allows; positive for a violation.
    """

    chosen: DecisionSet
    rate: float
    other_rate: float
    epsilon: float
    advantage: float
    excess: float


def run_tests(first: Array, second: Array, curve: ClaimedCurve, error: float) -> list[SetTest]:
    """Choose sets on one half of both samples, and test them on the other.

    Guarantee: if the claim holds, any test has a positive excess, or an ε above the true one at the claim's δ, with a
    probability of at most `error`.
    """
    first, second = _replace_infinities(first, second)
    quarter, half = len(first) // 4, len(first) // 2
    scores = learn_scores(first[:quarter], second[:quarter])
    each = error / (2 * SETS)
    chosen = choose_sets(scores, first[quarter:half], second[quarter:half], curve, each)
    return [_test(one, first[half:], second[half:], curve, each) for one in chosen]


def _test(chosen: DecisionSet, first: Array, second: Array, curve: ClaimedCurve, error: float) -> SetTest:
    sample, other = (second, first) if chosen.swapped else (first, second)
    rate = lower_bound(chosen.count(sample), len(sample), error)
    other_rate = upper_bound(chosen.count(other), len(other), error)
    epsilon = math.log((rate - curve.delta) / other_rate) if rate > curve.delta else 0.0
    excess = rate - float(curve.largest_rate(other_rate)[0])
    return SetTest(chosen, rate, other_rate, max(0.0, epsilon), max(0.0, rate - other_rate), excess)


def choose_sets(
    scores: list[Score], first: Array, second: Array, curve: ClaimedCurve, error: float
) -> list[DecisionSet]:
    """Choose the sets that promise the largest excess over the claim, the largest ε and the largest advantage."""
    width = math.sqrt(2 * math.log(1 / error))  # about so many deviations the bounds will be away
    found: list[tuple[float, float, float, DecisionSet]] = []
    for score in scores:
        for rates, other_rates, sets in _rates(score, first, second):
            low, high = _approximate_bounds(rates, other_rates, width, len(first))
            excess = low - curve.largest_rate(high)
            epsilon = np.log(np.maximum(low - curve.delta, 1e-300) / high)
            for values in (excess, epsilon, low - high):
                best = int(values.argmax())
                found.append((float(excess[best]), float(epsilon[best]), float(low[best] - high[best]), sets(best)))
    chosen: list[DecisionSet] = []
    by_goal = [sorted(found, key=itemgetter(goal), reverse=True) for goal in range(3)]
    for entries in zip(*by_goal, strict=True):
        chosen += dict.fromkeys(entry[3] for entry in entries if entry[3] not in chosen)
        if len(chosen) >= SETS:
            break
    return chosen[:SETS]


def _rates(score: Score, first: Array, second: Array) -> Iterator[tuple[Array, Array, _Sets]]:
    """Yield the shares of both samples in sets above and below thresholds, for either sample."""
    one, other = np.sort(score.function(first)), np.sort(score.function(second))
    both = np.sort(np.concatenate([one, other]))
    tails = np.geomspace(1 / len(both), 0.02, THRESHOLDS // 4)
    levels = np.concatenate([tails, np.linspace(0.02, 0.98, THRESHOLDS // 2), 1 - tails])
    thresholds = np.unique(both[np.minimum((levels * len(both)).astype(int), len(both) - 1)])
    above = [1 - np.searchsorted(values, thresholds, side="right") / len(values) for values in (one, other)]
    for is_above in (True, False):
        rates = above if is_above else [1 - each for each in above]
        for swapped in (False, True):
            sets = _Sets(score, thresholds, is_above, swapped)
            yield rates[int(swapped)], rates[int(not swapped)], sets


class _Sets(NamedTuple):
    score: Score
    thresholds: Array
    above: bool
    swapped: bool

    def __call__(self, place: int) -> DecisionSet:
        return DecisionSet(self.score, float(self.thresholds[place]), self.above, self.swapped)


def _approximate_bounds(rates: Array, others: Array, width: float, trials: int) -> tuple[Array, Array]:
    """Return roughly what Clopper and Pearson's bounds will be."""
    low = rates - width * np.sqrt(rates * (1 - rates) / trials) - width**2 / (4 * trials)
    high = others + width * np.sqrt(others * (1 - others) / trials) + width**2 / (2 * trials)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def compare_quickly(first: Array, second: Array, curve: ClaimedCurve) -> float:
    """Return about how much of the claim two small samples use up: at most about 1 if it holds, and more if not.

    The largest P(S) − e^ε·Q(S), less two standard errors, over the claimed δ; for all ε of the claim.
    """
    first, second = _replace_infinities(first, second)
    half, best = len(first) // 2, 0.0
    factors, allowed = np.exp(curve.epsilons)[:, None], np.maximum(curve.deltas, FLOOR)[:, None]
    for score in learn_scores(first[:half], second[:half], thorough=False):
        found = list(_rates(score, first[half:], second[half:]))
        rates, others = (np.concatenate([each[place] for each in found]) for place in (0, 1))
        variance, other_variance = ((each * (1 - each) + 1 / half) / half for each in (rates, others))
        gaps = rates - factors * others - 2 * np.sqrt(variance + factors**2 * other_variance)
        best = max(best, float((gaps / allowed).max()))
    return best


def _replace_infinities(*samples: Array) -> tuple[Array, ...]:
    """Return the samples with numbers beyond all others in place of NaN and infinity, which would spoil all scores."""
    most = max(float(np.abs(sample[np.isfinite(sample)]).max(initial=1.0)) for sample in samples)
    return tuple(np.nan_to_num(sample, nan=3 * most, posinf=2 * most, neginf=-2 * most) for sample in samples)
