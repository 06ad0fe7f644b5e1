"""Runs whose numbers are standardised: they learn from wide ranges, count the moments, and resume bit for bit."""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2

import discreet as discreet_module
from discreet import api
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.input_scale import CENTRE, SPREAD
from discreet.algorithms.sampling import AnySampling
from discreet.algorithms.standardisation import moment_deviation
from discreet.engines.embedded import EmbeddedEngine
from discreet.experiment.configuration import experiment_file
from discreet.experiment.job import Job
from discreet.experiment.loop.sum_odds import run_odds
from discreet.experiment.loop.training_loop import start_loop
from discreet.experiment.metrics import CONSTANT
from discreet.models.networks.linear import Linear
from discreet.part import from_plain, to_plain
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg.session_errors import RoundOver
from tests.cli.conftest import Discreet

EXPERIMENT = """\
rounds = 20
seed = 5
model = { kind = "linear" }

[task]
kind = "csv"
path = "visits.csv"
client = "hospital"
label = "ill"
ranges = "ranges.toml"

[privacy]
unit = "example"
against = "server"
epsilon = 4.0
delta = 1e-5

[algorithm]
recipe = "pfl"
sampling_rate = 0.5
clip_norm = 1.0
learning_rate = 1.0
"""
RANGES = """\
[columns]
age = { min = 0, max = 200 }
weight = { min = 0, max = 300 }
ward = { values = ["a", "b"] }
ill = { values = ["no", "yes"] }
"""
DDP = {'recipe = "pfl"': 'recipe = "ddp_fedavg"'}
CLIENT = {'recipe = "pfl"\nsampling_rate = 0.5': 'recipe = "dp_fedavg"\nbatch_size = 50\nepochs = 1'}
CLIENT |= {'unit = "example"\nagainst = "server"': 'unit = "client"\nagainst = "public"', "4.0": "400.0"}
NO_PROMISE = {EXPERIMENT[EXPERIMENT.index("[privacy]") : EXPERIMENT.index("[algorithm]")]: ""}


def write_experiment(folder: Path, rows: int = 500, changes: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Write a table whose numbers fill little of their ranges: ages around 45 of 200, weights around 75 of 300."""
    numbers = np.random.default_rng(1)
    lines = ["hospital,age,weight,ward,ill"]
    for hospital in ("north", "south", "west"):
        for _ in range(rows):
            age, weight = numbers.normal(45, 12), numbers.normal(75, 10)
            ill = (age - 45) / 12 + (weight - 75) / 10 + numbers.normal(0, 0.7) > 0
            lines.append(f"{hospital},{age:.2f},{weight:.2f},{'ab'[numbers.integers(2)]},{'yes' if ill else 'no'}")
    (folder / "visits.csv").write_text("\n".join(lines) + "\n")
    (folder / "ranges.toml").write_text(RANGES)
    text = EXPERIMENT
    for before, after in changes.items():
        text = text.replace(before, after)
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def build_job(folder: Path, *overrides: str, rows: int = 500, changes: Mapping[str, str] = MappingProxyType({})) -> Job:
    source = experiment_file.load_experiment(write_experiment(folder, rows, changes), overrides)
    return api.prepare_job(source)


def test_wide_public_ranges_are_no_obstacle(tmp_path: Path, discreet: Discreet) -> None:
    file = f"{write_experiment(tmp_path)} --set privacy.epsilon=20"
    honest = discreet(f"run {file} --out {tmp_path / 'with'} --json").json
    ranges_only = discreet(f"run {file} --set task.standardise=false --out {tmp_path / 'without'} --json").json
    assert honest["metrics"]["accuracy"] > 0.75
    assert ranges_only["metrics"]["accuracy"] < 0.7
    assert honest["guarantees"][0]["epsilon"] <= 20


@pytest.mark.parametrize("changes", [{}, DDP, CLIENT], ids=["pfl", "ddp_fedavg", "dp_fedavg"])
def test_centres_and_spreads_are_those_of_the_data_but_for_noise(changes: dict[str, str], tmp_path: Path) -> None:
    job = build_job(tmp_path, changes=changes)
    state = job.learn_input_scale(job.algorithm.init(job.params))
    deviation = moment_deviation(job.algorithm, job.population)
    assert deviation > 0
    expected = job.data.inputs.double().mean(0)[:2], job.data.inputs.double().std(0)[:2]
    torch.testing.assert_close(state.input_scale[CENTRE][:2], expected[0], atol=6 * deviation, rtol=0)
    floor = math.sqrt(2 * deviation * math.sqrt(5))
    assert ((state.input_scale[SPREAD][:2] - expected[1]).abs() < floor).all()
    assert state.input_scale[CENTRE][2:].tolist() == [0, 0, 0]  # the ward and the label
    assert state.input_scale[SPREAD][2:].tolist() == [1, 1, 1]


def test_the_moments_have_the_noise_that_is_counted(tmp_path: Path) -> None:
    """The false-alarm rate is 1e-6: a chi-squared interval over 400 draws of 2 means."""
    job = build_job(tmp_path, rows=100)
    deviation, draws = moment_deviation(job.algorithm, job.population), []
    exact = job.data.inputs.double().mean(0)[:2]
    for seed in range(400):
        seeded = replace(job, key=RunKey.from_seed(seed))
        centre = seeded.learn_input_scale(seeded.algorithm.init(seeded.params)).input_scale[CENTRE]
        draws.append(((centre[:2] - exact) / deviation).square())
    total = float(torch.stack(draws).sum())
    assert chi2.ppf(5e-7, 800) < total < chi2.ppf(1 - 5e-7, 800)


def test_the_card_names_the_rounds_and_the_sum_before_them(tmp_path: Path) -> None:
    lines = {count: run_odds(build_job(tmp_path, changes=DDP).terms, count) for count in (1, 20)}
    assert lines[20][0].startswith("Over 20 rounds and the sum that standardises the columns before them, a sum leaves")
    assert lines[1][0].startswith("Over 1 round and the sum that standardises the columns before it, a sum leaves")


def test_the_ledger_the_card_and_the_plan_count_the_moments(tmp_path: Path, discreet: Discreet) -> None:
    file = write_experiment(tmp_path)
    plan = discreet(f"plan {file} --json").json
    run = discreet(f"run {file} --out {tmp_path / 'run'} --json").json
    card = run["guarantees"][0]
    assert plan["epsilon"] == pytest.approx(card["epsilon"])
    kinds = [event["kind"] for event in card["event"]["events"]]
    assert kinds == ["repeated", "repeated"]
    assert "numbers (2 columns) are standardised" in " ".join(card["assumptions"])
    spent = discreet(f"ledger show {tmp_path / 'run' / 'ledger.jsonl'} --json").json["budgets"][0]["spent"]
    assert spent == pytest.approx(card["epsilon"], rel=1e-6)


def test_a_stopped_run_resumes_with_the_same_centres_and_the_same_model(tmp_path: Path, discreet: Discreet) -> None:
    file = write_experiment(tmp_path)
    discreet(f"run {file} --out {tmp_path / 'whole'}")
    job = api.prepare_job(experiment_file.load_experiment(file))
    with start_loop(job, tmp_path / "halves", None, None) as loop:
        for _ in range(3):
            loop.play_round()
        loop.checkpoint()
    assert discreet(f"run --resume {tmp_path / 'halves'}").code == 0
    whole, halves = (discreet_module.load(tmp_path / name).model.state_dict() for name in ("whole", "halves"))
    assert all(torch.equal(whole[name], halves[name]) for name in whole)


def test_one_client_at_a_time_gives_the_same_centres(tmp_path: Path) -> None:
    states = [
        job.learn_input_scale(job.algorithm.init(job.params)).input_scale
        for engine in ("embedded", "reference")
        for job in [build_job(tmp_path, f"engine={{kind='{engine}'}}", "dtype='float64'")]
    ]
    torch.testing.assert_close(states[0], states[1], atol=1e-12, rtol=0)


def test_a_secure_sum_gives_the_same_centres(tmp_path: Path) -> None:
    states = [
        job.learn_input_scale(job.algorithm.init(job.params)).input_scale
        for engine in ("embedded", "secure")
        for job in [build_job(tmp_path, f"engine={{kind='{engine}'}}", changes=DDP)]
    ]
    torch.testing.assert_close(states[0], states[1])


def test_few_rows_keep_their_ranges(tmp_path: Path) -> None:
    assert build_job(tmp_path, rows=10).algorithm.standardisation is None


def test_without_a_promise_noise_that_is_given_is_for_training_alone(tmp_path: Path) -> None:
    given = {"clip_norm = 1.0": "clip_norm = 1.0\nnoise_multiplier = 2.0"}
    assert build_job(tmp_path, changes=NO_PROMISE | given).algorithm.standardisation is None


def test_noise_that_is_given_and_takes_the_whole_promise_leaves_the_ranges(tmp_path: Path) -> None:
    noise: Any = build_job(tmp_path, "task.standardise=false").algorithm.trainer.noise_multiplier
    job = build_job(tmp_path, f"algorithm.noise_multiplier={noise}")
    assert job.algorithm.standardisation is None
    assert job.task.standardisation is not None
    more = build_job(tmp_path, f"algorithm.noise_multiplier={1.1 * noise}")
    assert more.algorithm.standardisation is not None


def test_without_privacy_the_moments_are_exact(tmp_path: Path) -> None:
    fedavg = 'recipe = "fedavg"\nbatch_size = 50\nepochs = 1'
    changes = {'recipe = "pfl"\nsampling_rate = 0.5\nclip_norm = 1.0': fedavg}
    job = build_job(tmp_path, "dtype='float64'", changes=NO_PROMISE | changes)
    input_scale = job.learn_input_scale(job.algorithm.init(job.params)).input_scale
    torch.testing.assert_close(input_scale[CENTRE][:2], job.data.inputs.mean(0)[:2])
    torch.testing.assert_close(input_scale[SPREAD][:2], job.data.inputs.std(0, correction=0)[:2])


def test_a_number_to_predict_is_standardised_and_predicted_in_its_own_units(tmp_path: Path) -> None:
    write_experiment(tmp_path)
    task = discreet_module.clients_from_csv(
        tmp_path / "visits.csv",
        client="hospital",
        label="weight",
        ranges={"age": {"min": 0, "max": 200}, "weight": {"min": 0, "max": 300}, "ward": "ignore", "ill": "ignore"},
    )
    assert task.standardisation is not None
    assert (task.standardisation.numeric, task.standardisation.target) == ((0,), True)
    arguments: dict[str, Any] = {"learning_rate": 0.3, "clip_norm": 1.0, "sampling_rate": 0.5}
    run = discreet_module.train(
        Linear(),
        task,
        rounds=10,
        algorithm=discreet_module.pfl(**arguments),
        privacy=discreet_module.Privacy(unit="example", against="server", epsilon=4.0, delta=1e-5),
        out=tmp_path / "run",
    )
    outputs = run.model(task.test_inputs).detach().flatten()
    assert outputs.mean().item() == pytest.approx(75 / 150 - 1, abs=0.02)
    assert run.metrics["mse"] == pytest.approx(float((outputs - task.test_targets).square().mean()), rel=1e-4)
    assert run.metrics["mse"] < 1.5 * run.metrics[CONSTANT]
    stored = json.loads((tmp_path / "run" / "guarantee.json").read_text())
    assert stored["metrics"]["mse"] == run.metrics["mse"]


def test_a_run_that_dies_in_its_first_round_goes_on_with_the_scale_it_had(
    tmp_path: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the last bits of the moments could differ, the round would draw other noise, and be released twice."""
    file = write_experiment(tmp_path)
    job = api.prepare_job(experiment_file.load_experiment(file))
    with start_loop(job, tmp_path / "run", None, None) as loop, monkeypatch.context() as patch:
        patch.setattr(type(loop._player.engine), "gather", _die_after_the_moments())
        with pytest.raises(MemoryError):
            loop.play_round()
    monkeypatch.setattr(Job, "learn_input_scale", _never_again)
    assert discreet(f"run --resume {tmp_path / 'run'}").code == 0
    assert len(discreet_module.load(tmp_path / "run").history) == 20


def _die_after_the_moments() -> Any:
    gather, calls = EmbeddedEngine.gather, list[int]()

    def die_at_the_second(self: Any, broadcast: Any, cohort: Any) -> Any:
        calls.append(broadcast.round)
        if calls == [-1, 0]:
            raise MemoryError
        return gather(self, broadcast, cohort)

    return die_at_the_second


def _never_again(*_: object) -> Any:
    raise AssertionError("The moments were summed a second time.")


@pytest.mark.parametrize("revealed", [False, True])
def test_a_lost_sum_of_moments_ends_the_run_without_a_card(
    revealed: bool, tmp_path: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> Any:
        raise RoundOver("Too few clients are left.", revealed=revealed)

    monkeypatch.setattr(Job, "learn_input_scale", lose)
    ran = discreet(f"run {write_experiment(tmp_path)} --out {tmp_path / 'run'}")
    assert ran.code != 0
    assert "The sum by which numbers are standardised is lost" in ran.err
    assert not (tmp_path / "run" / "guarantee.json").exists()
    ledger = discreet(f"ledger show {tmp_path / 'run' / 'ledger.jsonl'} --json").json
    assert bool(ledger["budgets"][0]["spent"]) is revealed  # what may have been seen stays reserved


@pytest.mark.parametrize("sampling", ["{kind='poisson', rate=0.5}", "{kind='fixed_size', cohort=2}"])
def test_clients_that_join_by_a_draw_and_add_noise_themselves_keep_their_ranges(sampling: str, tmp_path: Path) -> None:
    """The draw decides who is charged for a round, and all clients would be in the moments."""
    parts: Any = build_job(tmp_path).algorithm
    source = experiment_file.load_experiment(write_experiment(tmp_path))
    trainer = replace(parts.trainer, noise_multiplier=None)
    drawn = from_plain(Algorithm, to_plain(replace(parts, trainer=trainer, standardisation=None)))
    drawn = replace(drawn, sampling=from_plain(AnySampling, tomllib.loads(f"s = {sampling}".replace("'", '"'))["s"]))
    job = api.prepare_job(replace(source, experiment=replace(source.experiment, algorithm=drawn)))
    assert job.algorithm.standardisation is None
    assert job.algorithm.trainer.noise_multiplier


def test_no_guarantee_is_lost_for_a_standardisation(tmp_path: Path) -> None:
    """Noise of training protects examples and the server's protects clients: the moments would have only the second."""
    source = experiment_file.load_experiment(write_experiment(tmp_path, changes=CLIENT))
    noisy = discreet_module.pfl(noise_multiplier=5.0, clip_norm=1.0, learning_rate=0.1, sampling_rate=0.5).trainer
    both = replace(source.experiment.algorithm, trainer=noisy)
    job = api.prepare_job(replace(source, experiment=replace(source.experiment, algorithm=both)))
    assert job.algorithm.standardisation is None
    assert {release.unit for release in job.algorithm.releases(job.population, 0)} == {"example", "client"}


def test_a_stored_standardisation_of_other_columns_is_refused(tmp_path: Path, discreet: Discreet) -> None:
    job = build_job(tmp_path)
    file = tmp_path / "experiment.toml"
    file.write_text(job.resolved_text)
    assert discreet(f"plan {file}").code == 0
    ran = discreet(f"plan {file} --set task.standardise=false")
    assert ran.code == 2
    assert "algorithm.standardisation is not what follows from the task" in ran.err
