"""Tails of the binomial distribution, and confidence limits of a proportion (Clopper & Pearson 1934)."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def binomial_survival(trials: int, probability: float) -> Array:
    """Return P[Bin(trials, probability) ≥ v] for v = 0, …, trials + 1."""
    masses = binomial_masses(trials, probability)
    return np.append(np.minimum(1.0, np.cumsum(masses[::-1])[::-1]), 0.0)


def binomial_masses(trials: int, probability: float) -> Array:
    """Return P[Bin(trials, probability) = v] for v = 0, …, trials."""
    if probability <= 0 or probability >= 1:
        sure = np.zeros(trials + 1)
        sure[trials if probability >= 1 else 0] = 1.0
        return sure
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    counts = np.arange(trials + 1)
    logs = factorials[trials] - factorials[counts] - factorials[trials - counts]
    masses: Array = np.exp(logs + counts * math.log(probability) + (trials - counts) * math.log1p(-probability))
    return masses


def lower_limit(successes: int, trials: int, error: float) -> float:
    """Return the largest p that is rejected from below: the true proportion is smaller with probability ≤ `error`."""
    if successes == 0:
        return 0.0
    low, high = 0.0, successes / trials
    while low < (middle := (low + high) / 2) < high:
        too_small = binomial_survival(trials, middle)[successes] <= error
        low, high = (middle, high) if too_small else (low, middle)
        if high - low < 1e-10:
            break
    return low


def upper_limit(successes: int, trials: int, error: float) -> float:
    """Return a proportion that the true one exceeds with probability at most `error`."""
    return 1 - lower_limit(trials - successes, trials, error)
