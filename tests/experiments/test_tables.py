"""What the starter keeps of the gain on tables: how it is chosen, counted and written to a page."""

import csv
from pathlib import Path

import pytest

from discreet.data.tables.ranges import load_ranges
from experiments.tables import page, reproduce
from experiments.tables.reproduce import HERE, QUICK, read_results
from experiments.tables.sources import SOURCES, Source
from experiments.tables.trials import BY_NAME, Trial


@pytest.mark.parametrize("source", [BY_NAME[name] for name in QUICK], ids=QUICK)
def test_a_table_is_written_as_a_user_would_have_it(source: Source, tmp_path: Path):
    rows = source.write(tmp_path, tmp_path)
    with (tmp_path / "table.csv").open(newline="") as file:
        header, *cells = csv.reader(file)
    assert header == ["client", *load_ranges(tmp_path / "ranges.toml").columns]
    assert len(cells) == rows == source.count(tmp_path)["rows"]
    assert all(len(row) == len(header) for row in cells)


def test_whole_clients_are_cut_to_the_same_size(tmp_path: Path):
    BY_NAME["cancer"].write(tmp_path, tmp_path, clients=20)
    with (tmp_path / "table.csv").open(newline="") as file:
        _, *cells = csv.reader(file)
    sizes = [sum(row[0] == name for row in cells) for name in {row[0] for row in cells}]
    assert (len(sizes), min(sizes), max(sizes)) == (20, 28, 29)


def test_every_range_is_valid_and_no_label_is_an_input():
    for source in SOURCES:
        assert list(load_ranges(dict(source.ranges)).columns)[-1] == source.label


def test_validation_rows_choose_and_no_test_row_does():
    trials = list(reproduce.choosing_trials(BY_NAME["wine"]))
    assert all(trial.is_validation for trial in trials)
    rates = [trial for trial in trials if trial.kind == "fedavg"]
    found = {trial.key: {"score": score} for trial, score in zip(rates, (0.4, 0.9, None), strict=True)}
    assert reproduce.best_setting(BY_NAME["wine"], "fedavg", found) == rates[1].settings
    assert reproduce.best_setting(BY_NAME["wine"], "central", found) is None  # not all were tried


def test_the_kept_share_is_of_the_gain_of_the_better_model():
    own, constant = {0: 70.0, 1: 60.0}, {0: 50.0, 1: 50.0}
    shares = page.kept_shares(own, constant, [{0: 75.0, 1: 75.0}, {0: 90.0, 1: 70.0}])
    assert shares == [50.0, 50.0]
    assert page.kept_shares(own, constant, [{}, {}]) == []


def test_a_squared_error_becomes_the_explained_part_of_the_variance():
    trial = Trial("loans", "starter", 0)
    results = {trial.key: {"score": -0.5}, Trial("loans", "constant", 0).key: {"score": -2.0}}
    assert page.value(BY_NAME["loans"], trial, results) == 75.0


def test_the_page_is_what_the_results_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written = page.PAGE.read_text()
    monkeypatch.setattr(page, "PAGE", tmp_path / "tables.md")
    assert page.write(read_results(HERE)).read_text() == written
