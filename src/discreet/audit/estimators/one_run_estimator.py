"""One training run, many guesses: the auditor of Steinke, Nasr & Jagielski (2023), which assumes nothing of scores."""

import math

import numpy as np

from discreet.audit.estimators.binomial_tails import binomial_survival
from discreet.audit.estimators.estimate import Estimate, ScoredCanaries, check_levels

NAME = "one-run"
GUESSED_SHARES = (0.05, 0.1, 0.2, 0.4, 1.0)  # of the canaries that are guessed; fixed before scores are seen
LARGEST_EPSILON = 50.0


def estimate_by_guesses(canaries: ScoredCanaries, *, delta: float, confidence: float = 0.95) -> Estimate:
    """Return a lower confidence bound on ε by counting correct guesses of which canaries were present.

    The canaries with the highest scores are guessed to be present, as many with the lowest to be absent, and the others
    are not guessed. Several numbers of guesses are tried, and share the error (Bonferroni).

    Guarantee: if the scores of each run depend on nothing but what was released, the bound exceeds ε with probability
    at most 1 − confidence. The canaries of several runs count as those of one: they are one mechanism together.

    Args:
        canaries: The scores, and which canaries were present.
        delta: The δ of the bound.
        confidence: The probability that the bound holds.
    """
    check_levels(delta, confidence)
    numbers = guess_numbers(len(canaries))
    found = []
    for guesses in numbers:
        correct = count_correct(canaries, guesses)
        bound = smallest_epsilon(len(canaries), guesses, correct, delta, (1 - confidence) / len(numbers))
        found.append((bound, guesses, correct))
    bound, guesses, correct = max(found, default=(0.0, 0, 0))
    return Estimate(
        estimator=NAME,
        lower_bound=bound,
        confidence=confidence,
        delta=delta,
        canaries=len(canaries),
        present=int(canaries.present.sum()),
        points=((bound, delta),) if bound > 0 and delta > 0 else (),
        details={"guesses": guesses, "correct": correct},
    )


def guess_numbers(canaries: int) -> list[int]:
    """Return the numbers of guesses that are tried: even ones, from the number of canaries alone."""
    return sorted({2 * round(share * canaries / 2) for share in GUESSED_SHARES} & set(range(2, canaries + 1)))


def count_correct(canaries: ScoredCanaries, guesses: int) -> int:
    """Count correct guesses, half of them of presence and half of absence."""
    order = np.argsort(canaries.scores, kind="stable")
    half = guesses // 2
    return int((~canaries.present[order[:half]]).sum() + canaries.present[order[len(order) - half :]].sum())


def p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Bound the probability of at least `correct` correct guesses, if the mechanism is (ε, δ)-private.

    Theorem 5.2 of Steinke, Nasr & Jagielski (2023): f(v) + 2mδ·max_i (f(v − i) − f(v))/i, where m are the canaries,
    each present by a fair coin, and f(v) = P[Bin(guesses, e^ε/(1 + e^ε)) ≥ v].
    """
    survival = binomial_survival(guesses, 1 / (1 + math.exp(-epsilon)))
    best = float(survival[correct])
    if delta > 0 and correct > 0:
        steps = np.arange(1, correct + 1)
        best += 2 * canaries * delta * float(((survival[correct - steps] - best) / steps).max())
    return min(1.0, best)


def smallest_epsilon(canaries: int, guesses: int, correct: int, delta: float, error: float) -> float:
    """Return the largest ε at which this many correct guesses have a p-value of at most `error`; 0 if there is none."""
    low, high = 0.0, LARGEST_EPSILON
    if p_value(canaries, guesses, correct, 0.0, delta) > error:
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        is_rejected = p_value(canaries, guesses, correct, middle, delta) <= error
        low, high = (middle, high) if is_rejected else (low, middle)
    return low
