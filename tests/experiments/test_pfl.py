"""The files of paper 000's tables: each is an experiment that can be run, with the noise that its promise takes."""

import tomllib
from pathlib import Path

import pytest

from discreet.algorithms import Algorithm
from discreet.experiment import config
from discreet.experiment.promise import kept
from discreet.population import Population

FOLDER = Path(__file__).parents[2] / "experiments" / "pfl"
EXPERIMENTS = sorted(path for path in FOLDER.glob("*.toml") if not path.stem.startswith("table"))
TABLES = sorted(FOLDER.glob("table*.toml"))
NOISE = {2.93: 1.531, 2.7: 1.619, 7.53: 0.943}  # by the privacy-loss distribution, 20 epochs in batches of 256


def test_there_are_four_models_on_three_data_sets_with_and_without_privacy():
    plain = [path for path in EXPERIMENTS if path.stem.endswith("-fedavg")]
    assert len(plain) == 12
    assert len([path for path in EXPERIMENTS if path not in plain and not path.stem.endswith("-better")]) == 12


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_file_can_be_read_and_its_noise_keeps_its_promise(path: Path):
    experiment = config.load(path).experiment
    examples = 5000 if path.stem.startswith("cifar") else 6000
    population = Population(examples=(examples,) * 10)
    algorithm: Algorithm = kept(experiment.algorithm, experiment.privacy, experiment.rounds, population)
    if experiment.privacy is None:
        assert algorithm.over(20, population) == []
    else:
        assert algorithm.trainer.noise_multiplier == pytest.approx(NOISE[experiment.privacy.epsilon], abs=2e-3)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_table_names_experiments_that_are_there_and_a_number_for_each_cell(path: Path):
    table = tomllib.loads(path.read_text())
    rows = len(table["splits"]) if len(table["splits"]) > 1 else len(table["clients"])
    for column in table["column"]:
        kind = "" if "epsilon" in column else "-fedavg"
        assert all((FOLDER / f"{table['data']}-{model}{kind}.toml").exists() for model in table["models"])
        assert [len(row) for row in column["paper"]] == [len(table["models"])] * rows
    assert all(epochs * rounds == 20 for epochs, rounds in table["splits"])
