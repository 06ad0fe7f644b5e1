"""Validation metrics: beside the test metrics in the records of a run, and marked as not covered like those."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import discreet
from discreet import api
from discreet.errors import InvalidInput
from discreet.experiment.loop import training_loop
from discreet.report import run_page
from tests.small_experiment import PrepareJob

SPLIT = "task.validation_fraction=0.2"
SENTENCE = "The metrics on validation examples, and every choice made by them, without noise."


def silent(line: object) -> None:
    pass


def test_a_run_evaluates_on_validation_data_beside_the_test_data(prepare: PrepareJob, tmp_path: Path):
    job = prepare(SPLIT, "seed=1")
    ended = training_loop.start(job, tmp_path / "run", None, None, silent)
    lines = [json.loads(line) for line in (tmp_path / "run" / "rounds.jsonl").read_text().splitlines()]
    assert ["validation" in line for line in lines] == ["evaluation" in line for line in lines] == [False, True] * 2
    assert lines[-1]["validation"] == ended.validation == ended.summary()["validation"]
    assert lines[-1]["evaluation"] == ended.metrics != ended.validation
    assert job.validation_data is not None
    outputs = job.model.module_with_params(ended.state.params)(job.validation_data[0]).argmax(dim=1)
    share = float((outputs == job.validation_data[1]).double().mean())
    assert ended.validation["accuracy"] == pytest.approx(share)


def test_the_guarantee_counts_the_smaller_clients_and_covers_no_validation_metric(prepare: PrepareJob, tmp_path: Path):
    whole, split = prepare("seed=1"), prepare(SPLIT, "seed=1")
    assert split.population.examples == tuple(size - size // 5 for size in whole.population.examples)
    ended = training_loop.start(split, tmp_path / "run", None, None, silent)
    assert SENTENCE in ended.guarantees[0].not_covered
    without = training_loop.start(whole, tmp_path / "whole", None, None, silent)
    assert SENTENCE not in without.guarantees[0].not_covered
    assert "validation" not in without.summary()
    assert "validation" not in (tmp_path / "whole" / "guarantee.json").read_text()


def test_a_loaded_run_knows_its_validation_metrics_and_its_page_shows_them_as_uncovered(
    prepare: PrepareJob, tmp_path: Path
):
    ended = training_loop.start(prepare(SPLIT, "seed=1"), tmp_path / "run", None, None, silent)
    assert api.load(tmp_path / "run").validation == ended.validation
    page = run_page.write(tmp_path / "run").read_text()
    assert "on validation examples" in page
    assert "Measured on test and validation data without noise" in page
    public = run_page.write(tmp_path / "run", public=True).read_text()
    assert "Measured on" not in public
    assert str(round(ended.validation["accuracy"], 4)) not in public


def test_a_run_from_python_holds_out_the_same_examples_each_time(tmp_path: Path):
    inputs = torch.arange(40.0).reshape(20, 2) / 40
    task = discreet.clients_from_arrays(
        inputs,
        torch.arange(20) % 2,
        sizes=[10, 10],
        classes=2,
        test=(inputs, torch.arange(20) % 2),
        validation_fraction=0.3,
    )
    run = discreet.train(
        torch.nn.Linear(2, 2),
        task,
        rounds=1,
        algorithm=discreet.fedavg(learning_rate=0.1, batch_size=5, epochs=1),
        out=tmp_path / "run",
        seed=0,
    )
    assert set(run.validation) == {"accuracy", "loss"}
    assert run.history[-1]["validation"] == run.validation


def test_a_run_does_not_resume_with_other_validation_data(prepare: PrepareJob, tmp_path: Path):
    job = prepare(SPLIT, "rounds=4")
    loop = training_loop.start_loop(job, tmp_path / "run", None, None)
    with loop:
        loop.play_round()
        loop.checkpoint()
    assert job.validation_data is not None
    inputs, targets = job.validation_data
    other = replace(job, validation_data=(inputs + 1, targets))
    with pytest.raises(InvalidInput, match="other validation data"):
        training_loop.resume_loop(other, loop.record, None)
