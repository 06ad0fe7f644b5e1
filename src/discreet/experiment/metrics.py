"""The metrics of a model: in which order they are shown, which are shares, and how their names are written."""

from collections.abc import Collection

from discreet.words import fill

METRICS = ("accuracy", "mse", "loss")  # the order in which they are shown; a user's own come after
SHARES = ("accuracy",)  # metrics between 0 and 1 that are shown in percent
CONSTANT = "constant_mse"  # the error of a constant prediction: shown beside the squared error, never by itself


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
