"""What it costs to release the best of a secret random number of trials (Papernot & Steinke 2022)."""

import math
from collections.abc import Callable

import numpy as np

from discreet.privacy.noise_pairs import Array
from discreet.privacy.trial_count import PoissonTrials, TrialCount

ROUNDING = 1e-12  # relative: what a few sums and logarithms of doubles lose, and more


def best_of_curve(count: TrialCount, orders: Array, trial: Array, trial_delta: Callable[[float], float]) -> Array:
    """Return the Rényi curve of the best of K trials, of which nothing else is released.

    Guarantee: an upper bound at each order, if K is drawn from `count` without looking at the data and stays secret,
    the trials are independent and equally distributed, and each is compared by what it releases itself. Theorem 2 of
    Papernot & Steinke (2022) for truncated negative binomial numbers, Theorem 6 for Poisson ones. A Poisson number may
    be zero: the chance e^(−μ) of that is added to e^((λ−1)ε'), since without it the bound is too small for fewer
    than one trial on average (for coins of ½ and ⅓, μ = ½ and λ = 2 it gives 0, and 0.048 is true).

    Args:
        count: The distribution of the number of trials.
        orders: Rényi orders above 1, ascending. At more orders the bound is tighter.
        trial: The Rényi curve of one trial, with its score, at these orders.
        trial_delta: The δ at which one trial, with its score, has a given ε.
    """
    gaps = np.where(np.isinf(orders), np.inf, orders - 1)
    if isinstance(count, PoissonTrials):
        # at each order λ, the trial's δ at e^ε = 1 + 1/(λ − 1)
        deltas = [trial_delta(math.log1p(1 / gap)) for gap in gaps.tolist()]
        some = trial + count.mean * np.array(deltas)
        whole = some + np.logaddexp(math.log(count.mean), -count.mean - _exponent(gaps, some)) / gaps
    else:
        inverse = 1 / orders  # zero at the infinite order
        fixed = np.where(np.isinf(trial), np.inf, (1 - inverse) * trial) + count.log_stop * inverse
        added = (1 + count.shape) * min(float(fixed.min(initial=np.inf)), count.log_stop)
        whole = trial + added + math.log(count.mean) / gaps
    # a divergence never falls with the order, so a bound at a larger order holds at the smaller ones too
    return np.minimum.accumulate((np.maximum(0.0, whole) * (1 + ROUNDING))[::-1])[::-1]


def _exponent(gaps: Array, values: Array) -> Array:
    """Return (λ − 1)·value, which is zero for a value of zero at any order."""
    return np.multiply(gaps, values, where=values > 0, out=np.zeros_like(values))
