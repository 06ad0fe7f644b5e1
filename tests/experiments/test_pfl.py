"""The files of paper 000's tables: each is an experiment that can be run, with the noise that its promise takes."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.experiment.configuration import experiment_file
from discreet.experiment.promise.calibrate import calibrate_noise
from experiments.common import means
from experiments.pfl import cells, measured, page, reproduce

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
    experiment = experiment_file.load_experiment(path).experiment
    examples = 5000 if path.stem.startswith("cifar") else 6000
    population = Population(examples=(examples,) * 10)
    algorithm: Algorithm = calibrate_noise(experiment.algorithm, experiment.privacy, experiment.rounds, population)
    if experiment.privacy is None:
        assert algorithm.planned_releases(20, population) == []
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


def test_the_page_is_what_the_results_say_and_is_written_alike_each_time(tmp_path: Path):
    written = []
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        page.write(cells.results(), tmp_path / name)
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert set(written[0]) == {"pfl.md", "pfl-epochs.svg", "pfl-clients.svg"}
    assert written[0] == written[1]
    assert written[0]["pfl.md"] == (FOLDER.parents[1] / "docs" / "results" / "pfl.md").read_bytes()


def runs(*accuracies: float) -> list[dict[str, float]]:
    return [{"seed": seed, "accuracy": accuracy} for seed, accuracy in enumerate(accuracies)]


def test_a_difference_is_taken_seed_by_seed():
    assert measured.paired(runs(90, 80, 70), runs(91, 82, 73)) == pytest.approx((2, 1 / 3**0.5, 3))
    assert measured.paired(runs(90, 80, 70), runs(91)) == (1, None, 1)


def test_a_difference_is_clear_by_students_t():
    assert all(means.is_clear(means.Mean(gap, 1.0, 3)) for gap in (4.4, -4.4))
    assert not any(means.is_clear(each) for each in (means.Mean(4.2, 1.0, 3), means.Mean(9.9, None, 1)))


def test_fewer_than_three_seeds_are_said():
    said = [measured.said(runs(*accuracies)) for accuracies in ((), (90,), (90, 92), (90, 91, 92))]
    assert said == ["–", "**90.00** (n = 1)", "**91.00** ± 1.00 (n = 2)", "**91.00** ± 0.58"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["table9"], "TABLE must be one of table2, .*, and got 'table9'"),
        (["--models", "cnn"], "--models must be one of cnn-relu, cnn-ts, sn-linear, sn-cnn, and got 'cnn'"),
        (["--splits", "1-20"], "--splits must be one of 1x20, .*, and got '1-20'"),
        (["table2", "--epsilons", "2.7"], "--epsilons must be one of none, 2.93, 1.2, and got '2.7'"),
        (["--clients", "7"], "--clients must be one of 10, 25, 50, 100, 1, and got '7'"),
        (["--clients", "25", "--splits", "20x1"], "no cell of these tables"),
        (["table2", "--settings", "worse"], "there is no mnist-cnn-relu-worse.toml"),
    ],
)
def test_what_no_table_has_is_refused_in_a_sentence(
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *arguments])
    with pytest.raises(SystemExit, match="2"):
        reproduce.main()
    assert re.search(sentence, capsys.readouterr().err)
