"""A squared error is always shown with that of a constant: a model that is not better has learned nothing."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import discreet
from discreet.algorithms.recipes.fedavg import fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.cli.run import describe_metrics
from discreet.data.partition import OverlappingSplit
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.data.tasks.task import Task
from discreet.experiment.configuration.run_settings import Settings
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder
from discreet.randomness.streams import RunKey

TARGETS = [1.0, 2.0, 3.0, 6.0]  # their mean is 3
TEST = (np.zeros((2, 1)), np.array([2.0, 5.0]))  # squared distances 1 and 4 from it: 2.5 on average


def ready(task: Task) -> Job:
    return job_builder.build_job_from_objects(
        task,
        nn.Linear(1, 1),
        {"loss": None, "metric": None},
        key=RunKey.from_seed(0),
        algorithm=fedavg(learning_rate=0.1, batch_size=4),
        privacy=None,
        settings=Settings(rounds=1, seed=0, device="cpu"),
    )


def test_the_constant_is_the_mean_of_the_training_targets():
    prepared = ready(clients_from_arrays(np.zeros((4, 1)), TARGETS, sizes=[1, 3], test=TEST))
    found = prepared.evaluate(prepared.algorithm.init(prepared.params))
    assert list(found) == ["mse", "constant_mse", "loss"]
    assert found["constant_mse"] == pytest.approx(2.5)


def test_only_what_clients_hold_counts():
    examples = Examples(
        name="prices",
        inputs=torch.zeros(4, 1),
        targets=torch.tensor(TARGETS),
        test_inputs=torch.zeros(1, 1),
        test_targets=torch.zeros(1),
        kind="regression",
        classes=1,
    )
    task = examples.build_task(1, OverlappingSplit(fraction=0.25), torch.Generator().manual_seed(0))
    held = task.train.examples_at(torch.arange(1))[1]
    prepared = ready(task)
    assert prepared.evaluate(prepared.algorithm.init(prepared.params))["constant_mse"] == pytest.approx(float(held**2))


def test_classes_and_a_task_without_test_data_have_none():
    for task in (
        clients_from_arrays(np.zeros((4, 1)), TARGETS, sizes=[4]),
        clients_from_arrays(np.zeros((4, 1)), [0, 0, 0, 0], sizes=[4], classes=1, test=(TEST[0], [0, 0])),
    ):
        prepared = ready(task)
        assert "constant_mse" not in prepared.evaluate(prepared.algorithm.init(prepared.params))


def test_a_run_says_it_everywhere_and_the_card_does_not_cover_it(tmp_path: Path):
    ran = discreet.train(
        nn.Linear(1, 1),
        clients_from_arrays(np.zeros((40, 1)), TARGETS * 10, sizes=[20, 20], test=TEST),
        rounds=1,
        algorithm=pfl(local_steps=1, sampling_rate=0.5, clip_norm=1.0, learning_rate=0.1),
        privacy=discreet.Privacy(unit="example", against="server", epsilon=2.0, delta=1e-4),
        out=tmp_path / "run",
        key_dir=tmp_path / "keys",
    )
    assert ran.metrics["constant_mse"] == pytest.approx(2.5)
    assert "MSE and loss, computed without noise on test examples." in ran.guarantee.not_covered
    assert ran.guarantee is not None
    assert any("constant_mse" in each and "mean of the clients' targets" in each for each in ran.guarantee.not_covered)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "round 1; a constant: 2.5; not covered" in page
    assert "a constant is 2.5" in page  # the chart's description
    (line,) = (tmp_path / "run" / "rounds.jsonl").read_text().splitlines()
    assert json.loads(line)["evaluation"]["constant_mse"] == pytest.approx(2.5)


def test_the_end_of_a_run_names_both_in_one_place():
    said = list(describe_metrics({"mse": 7.4123, "constant_mse": 13.6, "loss": 7.4123}))
    assert said == ["mse 7.412 (constant_mse 13.6: by always predicting the training mean)", "loss 7.412"]
    assert list(describe_metrics({"accuracy": 0.5})) == ["accuracy 0.5"]
