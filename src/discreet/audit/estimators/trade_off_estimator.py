"""One training run in f-DP: the auditor of Mahloujifar, Melis & Chaudhuri (2024), by a recursion over trade-offs."""

import math
from collections.abc import Callable
from typing import TypeAlias

from discreet.audit.estimators.estimate import Estimate, ScoredCanaries, check_levels
from discreet.audit.estimators.one_run_estimator import LARGEST_EPSILON, count_correct, guess_numbers
from discreet.privacy import gaussian

NAME = "one-run-fdp"
LARGEST_MU = 20.0
GAUSSIAN_FAMILY = "the trade-off between false positives and false negatives is that of a Gaussian mechanism"

# the least false positive rate at which an attack can have this true positive rate
LeastFalsePositives: TypeAlias = Callable[[float], float]


def estimate_by_trade_off(
    canaries: ScoredCanaries, *, delta: float, confidence: float = 0.95, is_gaussian: bool = True
) -> Estimate:
    """Return a lower confidence bound on ε by correct guesses, tested against a family of trade-off functions.

    Guarantee: if the scores of each run depend on nothing but what was released, and (with `is_gaussian`) the trade-off
    is that of some μ-GDP mechanism, the bound exceeds ε with probability at most 1 − confidence.

    Args:
        canaries: The scores, and which canaries were present.
        delta: The δ of the bound.
        confidence: The probability that the bound holds.
        is_gaussian: Whether the family is μ-GDP. Otherwise it is (ε, δ)-privacy, which assumes nothing.
    """
    check_levels(delta, confidence)
    numbers, total = guess_numbers(len(canaries)), len(canaries)
    found = []
    for guesses in numbers:
        correct, error = count_correct(canaries, guesses), (1 - confidence) / len(numbers)
        if is_gaussian:
            mu = _largest_rejected(lambda mu: gaussian_rates(mu), LARGEST_MU, total, guesses, correct, error)
            bound = gaussian.epsilon(mu, delta)
        else:
            mu = None
            bound = _largest_rejected(
                lambda epsilon: private_rates(epsilon, delta), LARGEST_EPSILON, total, guesses, correct, error
            )
        found.append((bound, guesses, correct, mu))
    bound, guesses, correct, mu = max(found, default=(0.0, 0, 0, None))
    return Estimate(
        estimator=NAME,
        lower_bound=bound,
        confidence=confidence,
        delta=delta,
        canaries=total,
        present=int(canaries.present.sum()),
        assumes=GAUSSIAN_FAMILY if is_gaussian else "",
        points=((bound, delta),) if bound > 0 and delta > 0 else (),
        details={"guesses": guesses, "correct": correct, "mu": mu},
    )


def gaussian_rates(mu: float) -> LeastFalsePositives:
    """Return Φ(Φ⁻¹(p) − μ), the least false positive rate of μ-GDP."""

    def rate(found: float) -> float:
        if not 0 < found < 1:
            return min(max(found, 0.0), 1.0)
        return math.exp(gaussian.log_survival(gaussian.upper_quantile(math.log(found)) + mu))

    return rate


def private_rates(epsilon: float, delta: float) -> LeastFalsePositives:
    """Return the least false positive rate of (ε, δ)-privacy, whose trade-off has two lines."""
    factor = math.exp(-epsilon)

    def rate(found: float) -> float:
        return max(0.0, factor * (found - delta), 1 - delta - math.exp(epsilon) * (1 - found))

    return rate


def is_rejected(rate: LeastFalsePositives, canaries: int, guesses: int, correct: int, error: float) -> bool:
    """Return whether P[correct guesses ≥ `correct`] must be below `error` under this trade-off.

    Mahloujifar, Melis & Chaudhuri (2024), for two options and with guesses withheld. With p_i = P[i correct guesses of
    n], r_t = Σ_{i≥t} (i/m)·p_i and h_t = Σ_{i≥t} ((n − i)/m)·p_i, flipping one coin turns a correct guess into a
    wrong one in the same output, so f-DP and its concavity give h_t ≥ rate(r_{t+1}) for every t. From P[≥ correct] =
    `error` on, each step takes the least h_t; if r_0 + h_0 then exceeds n/m, which it must equal, no distribution has
    that many correct guesses so often.
    """
    found, missed = error * correct / canaries, error * (guesses - correct) / canaries
    whole = guesses / canaries
    for count in range(correct - 1, -1, -1):
        least = max(missed, rate(found))
        found += count / (guesses - count) * (least - missed)
        missed = least
        if found + missed > whole:
            return True
    return False


def _largest_rejected(
    family: Callable[[float], LeastFalsePositives], most: float, canaries: int, guesses: int, correct: int, error: float
) -> float:
    """Return the largest member of a family that is rejected; 0 if none is."""
    if not is_rejected(family(0.0), canaries, guesses, correct, error):
        return 0.0
    low, high = 0.0, most
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if is_rejected(family(middle), canaries, guesses, correct, error) else (low, middle)
    return low
