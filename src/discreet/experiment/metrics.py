"""The metrics of a model: in which order they are shown, which are shares, and how their names are written."""

import math
from collections.abc import Collection, Mapping

from discreet.words import fill

METRICS = ("accuracy", "mse", "loss")  # the order in which they are shown; a user's own come after
SHARES = ("accuracy",)  # metrics between 0 and 1 that are shown in percent
LEAST_GAIN = 0.01  # over a constant answer, below which a model has learned little
CONSTANT = "constant_mse"  # the error of a constant prediction: shown beside the squared error, never by itself


def model_warning(metrics: Mapping[str, float | str], constant_accuracy: float | None) -> str | None:
    """Return a warning if the model has diverged, or is hardly better than one that always gives the same answer.

    Args:
        metrics: The evaluation of the model; infinity and NaN may be words, as JSON holds them.
        constant_accuracy: The share of test examples with the clients' most frequent label. None if unknown.
    """
    diverged = [name for name in METRICS if name in metrics and not math.isfinite(float(metrics[name]))]
    if diverged:
        return (
            f"The model has diverged: its {diverged[0]} is not a finite number. A smaller learning rate, fewer local "
            "steps or a smaller clip may help."
        )
    named = (metrics.get(name) for name in ("accuracy", "mse", CONSTANT))
    accuracy, error, constant = (None if value is None else float(value) for value in named)
    if accuracy is not None and constant_accuracy is not None and not accuracy >= constant_accuracy + LEAST_GAIN:
        answer, right = "the most frequent label", f"right for {constant_accuracy:.1%} of the test examples"
    elif error is not None and constant is not None and not error <= constant * (1 - LEAST_GAIN):
        answer, right = "the mean", f"off by a squared error of {constant:.4g}"
    else:
        return None
    return (
        f"The model has learned little: always predicting {answer} is {right}. More rows or clients, a larger epsilon, "
        "other rounds, rates or clips may help; `discreet plan` shows the noise beside the signal."
    )


def choosing_metric(names: Collection[str]) -> str:
    """Return the metric by which settings are chosen: accuracy, else the squared error, else the loss.

    A metric of the user's own chooses nothing, since nobody has said whether more of it is better.
    """
    return next(name for name in METRICS if name in names)


def is_better(metric: str, value: float, other: float) -> bool:
    """Return whether a value of one of `METRICS` is better than another. What is not finite is worse than any."""
    if not math.isfinite(value) or not math.isfinite(other):
        return math.isfinite(value)
    return value > other if is_share(metric) else value < other


def is_share(metric: str) -> bool:
    """Return whether a metric is a share of the examples, which is shown in percent."""
    return metric in SHARES


def capitalize(name: str) -> str:
    """Write the name of a metric as a heading: MSE, Accuracy."""
    return name.upper() if name == "mse" else name[:1].upper() + name[1:]


def list_metrics(names: Collection[str]) -> str:
    """Name metrics at the beginning of a sentence: "Accuracy, f1 and loss"."""
    first, *others = [name for name in names if name != CONSTANT]
    listed = ", ".join([capitalize(first), *others[:-1]])
    return fill("list.pair", first=listed, last=others[-1]) if others else listed
