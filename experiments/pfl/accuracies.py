"""Accuracies of PFL's cells: their means over seeds, and how its page says them."""

import statistics

from experiments.common import means
from experiments.common.means import Mean
from experiments.pfl.cells import Result, select_results

NAMES = {"cnn-relu": "CNN+ReLU", "cnn-ts": "CNN+TS", "sn-linear": "SN+Linear", "sn-cnn": "SN+CNN"}
WHOSE = {"paper": "ours", "authors": "the authors'"}  # settings
SETS = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "cifar": "CIFAR-10"}


def accuracies(found: list[Result]) -> list[float]:
    return [each["accuracy"] for each in found]


def mean(found: list[Result]) -> Mean:
    return means.mean(accuracies(found))


def mean_text(found: list[Result]) -> str:
    return means.mean_text(accuracies(found))


def paired_difference(less: list[Result], found: list[Result]) -> Mean:
    """The mean of `found` less `less`, seed by seed."""
    return means.paired_difference(_by_seed(less), _by_seed(found))


def _by_seed(found: list[Result]) -> dict[int, float]:
    return {each["seed"]: statistics.fmean(accuracies(select_results(found, seed=each["seed"]))) for each in found}
