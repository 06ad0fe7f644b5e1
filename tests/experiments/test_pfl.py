"""The files of PFL's tables: each is an experiment that can be run, with the noise that its promise needs."""

import argparse
import re
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from torch import nn

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.data.tasks.task_loading import find_source
from discreet.experiment.configuration import experiment_file
from discreet.experiment.promise.calibrate import calibrate_noise
from experiments.common import means
from experiments.common.parts import part
from experiments.pfl import accuracies, cells, page, reproduce, theorems
from experiments.pfl.authors import networks

FOLDER = Path(__file__).parents[2] / "experiments" / "pfl"
EXPERIMENTS = sorted(path for path in FOLDER.glob("*.toml") if not path.stem.startswith("table"))
AUTHORS = sorted((FOLDER / "authors").glob("*.toml"))
TABLES = sorted(FOLDER.glob("table*.toml"))
AUTHORS_NOISE = {2.93: 0.957, 2.7: 0.996, 7.53: 0.685}  # the same in batches of 64
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


def test_the_authors_settings_have_the_same_files():
    ours = {path.stem for path in EXPERIMENTS if not path.stem.endswith("-better")}
    assert {path.stem for path in AUTHORS} == ours


@pytest.mark.parametrize("path", AUTHORS, ids=lambda path: path.stem)
def test_the_authors_clients_overlap_and_one_alone_takes_the_noise_of_a_batch_of_64(path: Path):
    experiment = experiment_file.load_experiment(path).experiment
    assert find_source(experiment.task).partition.kind == "overlapping"
    examples = 5000 if path.stem.startswith("cifar") else 6000
    alone = Population(examples=(examples,) * 10)
    algorithm: Algorithm = calibrate_noise(experiment.algorithm, experiment.privacy, experiment.rounds, alone)
    if experiment.privacy is None:
        assert algorithm.planned_releases(20, alone) == []
    else:
        assert algorithm.trainer.noise_multiplier == pytest.approx(AUTHORS_NOISE[experiment.privacy.epsilon], abs=2e-3)


@pytest.mark.parametrize(
    ("network", "shape", "parameters"),
    [
        (networks.grey_cnn("relu"), (1, 28, 28), 10_650),
        (networks.colour_cnn("tempered_sigmoid"), (3, 32, 32), 605_226),
        (networks.scatter_linear(3969), (81, 7, 7), 47_638),
        (networks.scatter_cnn_grey(), (81, 7, 7), 20_940),
        (networks.scatter_cnn_colour(), (243, 8, 8), 180_016),
    ],
)
def test_the_authors_networks_have_the_parameters_of_their_code(
    network: nn.Module, shape: tuple[int, ...], parameters: int
):
    assert network(torch.zeros(2, *shape)).shape == (2, 10)
    assert sum(value.numel() for value in network.parameters()) == parameters


def test_pixels_are_standardised_channel_by_channel():
    layer = networks.standardise([0.1, 0.2], [0.5, 0.25])
    found = layer(torch.full((1, 2, 1, 1), 0.6)).flatten().tolist()
    assert found == pytest.approx([1.0, 1.6])


def test_with_the_authors_settings_all_clients_but_a_single_one_overlap():
    found = cells.with_settings("authors", list(cells.cells(cells.table("table5-mnist"))))
    assert {(cell.clients, cell.overlapping) for cell in found} == {
        (10, True),
        (25, True),
        (50, True),
        (100, True),
        (1, False),
    }
    assert len(found) == len(set(found)) == 20


def test_processes_share_the_runs():
    assert part("3/10") == (3, 10)
    for text in ("0/10", "11/10", "3", "a/b"):
        with pytest.raises(argparse.ArgumentTypeError, match="must be I/N"):
            part(text)


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
    assert accuracies.paired_difference(runs(90, 80, 70), runs(91, 82, 73)) == pytest.approx((2, 1 / 3**0.5, 3))
    assert accuracies.paired_difference(runs(90, 80, 70), runs(91)) == (1, None, 1)


def test_a_difference_is_clear_by_students_t():
    assert all(means.is_clear(means.Mean(gap, 1.0, 3)) for gap in (4.4, -4.4))
    assert not any(means.is_clear(each) for each in (means.Mean(4.2, 1.0, 3), means.Mean(9.9, None, 1)))


def test_fewer_than_three_seeds_are_said():
    said = [accuracies.mean_text(runs(*values)) for values in ((), (90,), (90, 92), (90, 91, 92))]
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
        (["table2", "--settings", "better"], "there is no mnist-cnn-relu-better.toml"),
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


def test_a_column_with_one_seed_is_not_counted_as_tested():
    falls = [means.Mean(-30.0, 1.0, 3), means.Mean(-20.0, None, 1)]
    told = theorems._count_falls(falls)
    assert "**holds**: 1 of 1 falls are clear" in told
    assert "The other 1 columns have one seed each" in told
    assert "2 of 2 fall" in told
    assert "**holds in part**: 1 of 2 falls" in theorems._count_falls([*falls[:1], means.Mean(-1.0, 1.0, 3)])


def test_a_run_that_shared_the_gpu_with_six_others_took_a_seventh_of_its_seconds():
    assert page._gpu_seconds([{"seconds": 70.0, "at_once": 7}, {"seconds": 280.0}]) == pytest.approx((10 + 20) / 2)


def test_the_errata_count_the_columns_as_the_page_does():
    errata, told = ((page.DOCS.parent / name).read_text() for name in ("errata.md", "results/pfl.md"))
    assert "is so in 17 of 24 columns with privacy" in told
    assert "best in 17 of 24 columns with privacy" in errata
    for count in ("15 of 15", "2 of 6"):
        assert f"E = 1 is better than E = 2 in {count}" in told
        assert count in errata
    assert "better than ten in 10 of 10" in told
    assert "better than ten in 10 of 10" in errata
