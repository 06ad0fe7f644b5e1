"""The share of clipped examples: right by the mathematics of a linear model, and for the owner only."""

import json
from pathlib import Path

import torch

from discreet.experiment.job import Job
from discreet.experiment.loop import training_loop
from discreet.experiment.loop.example_clipping import EXAMPLES, clipped_example_share
from discreet.experiment.run_directory.run_data import read_run
from discreet.randomness.purposes import Purpose
from discreet.report.run_page import render_page
from tests.small_experiment import PrepareJob

PFL = 'algorithm={{recipe="pfl", learning_rate=1.0, clip_norm={clip}, sampling_rate=0.5}}'
CHART = "Fraction of examples clipped"


def gradient_norms(job: Job) -> torch.Tensor:
    """At a linear model of zeros, each of ten classes has probability 0.1: ‖p − y‖·‖(x, 1)‖ = √0.9·√(1 + ‖x‖²)."""
    generator = job.key.generator(Purpose.TRAINING_EXAMPLES)
    chosen = torch.randperm(sum(job.data.sizes), generator=generator)[:EXAMPLES].sort().values
    inputs = job.data.examples_at(chosen)[0].flatten(1).double()
    return (0.9 * (1 + inputs.square().sum(1))).sqrt()


def test_a_gradient_above_the_clip_norm_is_counted(prepare: PrepareJob) -> None:
    norms = gradient_norms(prepare(PFL.format(clip=1.0), "seed=7"))
    middle = float(norms.median()) + 1e-3
    job = prepare(PFL.format(clip=middle), "seed=7")
    assert clipped_example_share(job, job.algorithm.init(job.params)) == float((norms > middle).double().mean())
    job = prepare(PFL.format(clip=1e6))
    assert clipped_example_share(job, job.algorithm.init(job.params)) == 0.0


def test_each_client_has_its_own_clip(prepare: PrepareJob) -> None:
    job = prepare(PFL.format(clip="[1e-3, 1e6, 1e6]"))
    share = clipped_example_share(job, job.algorithm.init(job.params))
    generator = job.key.generator(Purpose.TRAINING_EXAMPLES)
    chosen = torch.randperm(sum(job.data.sizes), generator=generator)[:EXAMPLES]
    assert share == float((chosen < job.data.sizes[0]).double().mean())


def test_where_no_example_is_clipped_nothing_is_said(prepare: PrepareJob) -> None:
    whole = 'algorithm={recipe="dp_fedavg", learning_rate=0.5, batch_size=32, clip_norm=1.0}'
    job = prepare(whole, 'privacy={unit="client", against="public", epsilon=100.0, delta=1e-4}')
    assert clipped_example_share(job, job.algorithm.init(job.params)) is None


def test_the_owner_sees_it_and_the_public_page_leaves_it_out(prepare: PrepareJob, tmp_path: Path) -> None:
    training_loop.start(prepare(PFL.format(clip=1.0)), tmp_path / "run", None, None, lambda line: None)
    lines = [json.loads(line) for line in (tmp_path / "run" / "rounds.jsonl").read_text().splitlines()]
    assert all(0 <= line["clipped_examples"] <= 1 for line in lines if "evaluation" in line)
    run = read_run(tmp_path / "run")
    assert CHART in render_page(run)
    assert CHART not in render_page(run, public=True)
