"""What was seen in audited runs as estimators take it: entries in single rounds, or one score for each canary."""

import math
from collections.abc import Sequence

import numpy as np

from discreet.audit.audited_run import AuditedRun
from discreet.audit.estimators.binomial_tails import binomial_masses
from discreet.audit.estimators.estimate import Array, ScoredCanaries
from discreet.audit.estimators.gaussian_estimator import SeenEntries
from discreet.audit.estimators.score_pairs import Design

LEAST_WEIGHT = 1e-12


def collect_entries(runs: Sequence[AuditedRun], design: Design) -> SeenEntries:
    """Return what was seen in every round of all runs, with the entries that the auditor knows of."""
    values = np.concatenate([run.values.ravel() for run in runs])
    signs = [np.where(run.present, 1.0, -1.0 if design.opposite else 0.0)[:, None] for run in runs]
    counts = np.concatenate([(sign * run.entries).ravel() for sign, run in zip(signs, runs, strict=True)])
    seen = ~np.isnan(values)
    canaries = sum(len(run.present) for run in runs)
    return SeenEntries(values[seen], counts[seen], canaries, int(sum(run.present.sum() for run in runs)))


def score_canaries(runs: Sequence[AuditedRun], design: Design) -> ScoredCanaries:
    """Score each canary by the likelihood ratio of what is seen of it, as if one entry were one deviation of noise.

    The scores depend on nothing but what is seen: the deviation is that of all values of a run, by their median.
    """
    scores = np.concatenate([_log_ratios(run.values, design) for run in runs])
    present = np.concatenate([run.present for run in runs])
    numbers = np.repeat(np.arange(len(runs)), [len(run.present) for run in runs])
    return ScoredCanaries(scores, present, numbers)


def _log_ratios(values: Array, design: Design) -> Array:
    seen = values[~np.isnan(values)]
    middle = float(np.median(seen)) if len(seen) else 0.0
    deviation = float(np.median(np.abs(seen - middle))) * 1.4826 if len(seen) else 1.0
    x = np.nan_to_num(values / (deviation or 1.0))
    if design.rate == 1 or design.opposite:
        return np.asarray(x.sum(axis=1), dtype=np.float64)
    step = 1 / math.sqrt(design.trials)
    counts = [count for count in enumerate(binomial_masses(design.trials, design.rate)) if count[1] > LEAST_WEIGHT]
    terms = np.stack([math.log(weight) + count * step * x - (count * step) ** 2 / 2 for count, weight in counts])
    return np.asarray(np.logaddexp.reduce(terms, axis=0).sum(axis=1), dtype=np.float64)
