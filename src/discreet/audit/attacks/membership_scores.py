"""Scores by which membership is guessed: the loss itself, and the likelihood ratio against shadow models."""

import numpy as np

from discreet.audit.attacks.attack_rates import Flags, Scores

SMALLEST_VARIANCE = 1e-12
LARGEST_LOSS = 500.0  # above which e^loss overflows


def logit_confidence(losses: Scores) -> Scores:
    """Return log(p/(1−p)) of the probability p = e^−loss that a model gives to the right label.

    It is nearly Gaussian over models, which the likelihood ratio assumes (Carlini et al. 2022, section V.C).
    """
    bounded = np.clip(losses, 1e-12, LARGEST_LOSS)
    return np.asarray(-np.log(np.expm1(bounded)))


def loss_threshold_scores(losses: Scores, units: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Scores:
    """Score each unit by the mean of its examples' losses, the smallest highest (Yeom et al. 2018).

    Args:
        losses: The loss of each example, for each model in a row.
        units: The number of the unit that each example belongs to.
    """
    return -_sum_by_unit(losses, units) / np.bincount(units)


def likelihood_ratio_scores(
    confidences: Scores, present: Flags, units: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Scores:
    """Score each unit by the likelihood ratio of its confidence, with all other models as shadows of each model.

    For each example, models with it and without it are two Gaussians, whose means are its own and whose variances are
    those of all examples: few shadows can't tell the variance of each (Carlini et al. 2022, online attack). A unit's
    ratio is the product over its examples.

    Guarantee: the scores of a model depend on the presence of units in the other models only, so they may be compared
    with its own coins.

    Args:
        confidences: The confidence of each example, for each model in a row.
        present: Whether each unit was present when a model was trained, for each model in a row.
        units: The number of the unit that each example belongs to.
    """
    scores = np.empty(present.shape)
    seen = present[:, units]
    for target in range(len(confidences)):
        others = np.arange(len(confidences)) != target
        shadows, inside = confidences[others], seen[others]
        with_mean, with_variance = _fit(shadows, inside)
        without_mean, without_variance = _fit(shadows, ~inside)
        observed = confidences[target]
        ratio = _log_density(observed, with_mean, with_variance)
        ratio -= _log_density(observed, without_mean, without_variance)
        scores[target] = _sum_by_unit(np.nan_to_num(ratio)[None], units)[0]
    return scores


def _fit(shadows: Scores, chosen: Flags) -> tuple[Scores, float]:
    """Return the mean of the chosen models for each example, NaN without two; and one variance for all examples."""
    counts = chosen.sum(axis=0)
    enough = counts > 1
    sums = np.where(chosen, shadows, 0).sum(axis=0)
    means = np.where(enough, sums / np.maximum(counts, 1), np.nan)
    squares = np.where(chosen & enough, (shadows - np.nan_to_num(means)) ** 2, 0).sum()
    freedom = max(1, int((counts[enough] - 1).sum()))
    return means, max(float(squares / freedom), SMALLEST_VARIANCE)


def _log_density(values: Scores, means: Scores, variance: float) -> Scores:
    return np.asarray(-((values - means) ** 2) / (2 * variance) - np.log(variance) / 2)


def _sum_by_unit(values: Scores, units: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Scores:
    summed = np.zeros((len(values), int(units.max()) + 1))
    for row, total in zip(values, summed, strict=True):
        np.add.at(total, units, row)
    return summed
