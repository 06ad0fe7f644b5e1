"""Means over seeds with their standard errors, and their text on a page."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scipy import stats

SEEDS = 3  # of every cell; where there are fewer, the page says so


class Mean(NamedTuple):
    """`error` is the standard error, where there is more than one run."""

    value: float
    error: float | None
    runs: int


def mean(values: Sequence[float]) -> Mean:
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return Mean(statistics.fmean(values), error, len(values))


def paired_difference(less: Mapping[int, float], found: Mapping[int, float]) -> Mean:
    """Return the mean of `found` − `less` over the seeds that both have, with the standard error of the differences."""
    return mean([found[seed] - less[seed] for seed in sorted(set(found) & set(less))])


def mean_text(values: Sequence[float], digits: int = 2) -> str:
    if not values:
        return "–"
    value, error, runs = mean(values)
    return f"**{value:.{digits}f}**{_spread(error, runs, digits)}"


def gap_text(gap: Mean, digits: int = 2) -> str:
    return f"{gap.value:+.{digits}f}{_spread(gap.error, gap.runs, digits)}"


def is_clear(gap: Mean) -> bool:
    """Return whether a mean difference is clear by a two-sided t test at 5 %: for three pairs, 4.3 standard errors."""
    return gap.error is not None and abs(gap.value) > stats.t.ppf(0.975, gap.runs - 1) * gap.error


def _spread(error: float | None, runs: int, digits: int) -> str:
    few = "" if runs >= SEEDS else f" (n = {runs})"
    return ("" if error is None else f" ± {error:.{digits}f}") + few
