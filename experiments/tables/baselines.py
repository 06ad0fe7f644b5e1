"""Without privacy: a constant answer, and logistic or ridge regression on the rows of all clients in one place."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from discreet import api
from discreet.experiment.configuration import experiment_file

Array = NDArray[np.float64]


def _split(file: Path, overrides: tuple[str, ...], is_validation: bool) -> tuple[bool, Array, Array, Array, Array]:
    """Return whether it is a regression, and the rows that are trained and scored on: those of a run with this seed."""
    task = api.prepare_job(experiment_file.load_experiment(file, overrides)).task
    scored = task.validation if is_validation else (task.test_inputs, task.test_targets)
    assert scored is not None
    inputs, targets = task.train.examples_at(torch.arange(sum(task.train.sizes)))
    first, second, third, fourth = (np.asarray(each).astype(np.float64) for each in (inputs, targets, *scored))
    return task.kind == "regression", first, second, third, fourth


def constant_answer(file: Path, overrides: tuple[str, ...], is_validation: bool) -> float:
    """Return the accuracy of the most frequent label, or minus the squared error of the mean."""
    is_regression, _, targets, _, scored = _split(file, overrides, is_validation)
    if is_regression:
        return -float(np.square(scored - targets.mean()).mean())
    return float((scored == np.bincount(targets.astype(int)).argmax()).mean())


def central_model(file: Path, overrides: tuple[str, ...], is_validation: bool, penalty: float) -> float:
    """Return the accuracy of logistic regression, or minus the squared error of ridge regression."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.preprocessing import StandardScaler

    is_regression, inputs, targets, scored_inputs, scored = _split(file, overrides, is_validation)
    scale = StandardScaler().fit(inputs)
    inputs, scored_inputs = scale.transform(inputs), scale.transform(scored_inputs)
    if is_regression:
        fitted = Ridge(alpha=penalty).fit(inputs, targets.ravel())
        return -float(np.square(scored.ravel() - fitted.predict(scored_inputs)).mean())
    return float(LogisticRegression(C=1 / penalty, max_iter=500).fit(inputs, targets).score(scored_inputs, scored))
