"""Means over seeds with their standard errors, and how a page says them."""

import math
import statistics

from cells import Result, chosen
from scipy import stats

SEEDS = 3  # of every cell; where there are fewer, the page says so
NAMES = {"cnn-relu": "CNN+ReLU", "cnn-ts": "CNN+TS", "sn-linear": "SN+Linear", "sn-cnn": "SN+CNN"}
SETS = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "cifar": "CIFAR-10"}


def mean(found: list[Result]) -> tuple[float, float | None]:
    """The mean accuracy and its standard error, where there is more than one run."""
    return _mean([each["accuracy"] for each in found])


def paired(less: list[Result], found: list[Result]) -> tuple[float, float | None, int]:
    """The mean of `found` less `less`, seed by seed, its standard error, and how many seeds have both.

    What a seed does to both is gone from the standard error.
    """
    shared = sorted({each["seed"] for each in found} & {each["seed"] for each in less})
    one, other = (
        [statistics.fmean(each["accuracy"] for each in chosen(runs, seed=seed)) for seed in shared]
        for runs in (found, less)
    )
    return *_mean([a - b for a, b in zip(one, other, strict=True)]), len(shared)


def said(found: list[Result]) -> str:
    if not found:
        return "–"
    value, error = mean(found)
    few = "" if len(found) >= SEEDS else f" (n = {len(found)})"
    return f"**{value:.2f}**" + ("" if error is None else f" ± {error:.2f}") + few


def gap_said(gap: float, error: float | None, runs: int) -> str:
    few = "" if runs >= SEEDS else f" (n = {runs})"
    return f"{gap:+.2f}" + ("" if error is None else f" ± {error:.2f}") + few


def is_clear(gap: float, error: float | None, runs: int) -> bool:
    """Whether a difference of so many pairs is one by a two-sided t test at 5 %: for three, 4.3 standard errors."""
    return error is not None and abs(gap) > stats.t.ppf(0.975, runs - 1) * error


def _mean(values: list[float]) -> tuple[float, float | None]:
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return statistics.fmean(values), error
