"""Metrics in words: which are shown in percent, and how several are listed in a sentence."""

from pathlib import Path

import numpy as np
import pytest
from torch import Tensor, nn

import discreet
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.experiment.metrics import METRICS, SHARES, is_share, list_metrics


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["loss"], "Loss"),
        (["accuracy", "loss"], "Accuracy and loss"),
        (["accuracy", "f1", "recall", "loss"], "Accuracy, f1, recall and loss"),
        (["mse", "constant_mse", "loss"], "MSE and loss"),
    ],
)
def test_metrics_are_listed_in_a_sentence(names: list[str], expected: str) -> None:
    assert list_metrics(names) == expected


def test_shares_are_metrics_that_are_shown_in_percent() -> None:
    assert set(SHARES) <= set(METRICS)
    assert [is_share(name) for name in ("accuracy", "loss", "mine")] == [True, False, False]


def test_the_card_names_every_metric_that_was_evaluated(tmp_path: Path) -> None:
    def positives(outputs: Tensor, targets: Tensor) -> float:
        return float((outputs.argmax(dim=1) == 1).double().mean())

    inputs, labels = np.zeros((40, 2)), np.arange(40) % 2
    run = discreet.train(
        nn.Linear(2, 2),
        clients_from_arrays(inputs, labels, sizes=[20, 20], test=(inputs[:5], labels[:5])),
        rounds=1,
        algorithm=discreet.pfl(local_steps=1, sampling_rate=0.5, clip_norm=1.0, learning_rate=0.1),
        privacy=discreet.Privacy(unit="example", against="server", epsilon=2.0, delta=1e-4),
        metric=positives,
        out=tmp_path / "run",
        key_dir=tmp_path / "keys",
    )
    assert run.guarantee is not None
    assert list(run.metrics) == ["accuracy", "positives", "loss"]
    assert "Accuracy, positives and loss, computed without noise on test examples." in run.guarantee.not_covered
