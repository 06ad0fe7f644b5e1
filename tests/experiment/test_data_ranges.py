"""Ranges taken from the data are used only if accepted, and nothing calls them public."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import discreet
from discreet import api
from discreet.cli.main import run
from discreet.errors import InvalidInput
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop import training_loop as loop

EXPERIMENT = """\
rounds = 1
model = { kind = "linear" }

[task]
kind = "csv"
path = "visits.csv"
client = "hospital"
label = "stay"
ranges = "ranges.toml"
test_fraction = 0.0

[privacy]
unit = "example"
against = "server"
epsilon = 4.0
delta = 1e-3

[algorithm]
recipe = "pfl"
noise_multiplier = 2.0
sampling_rate = 0.5
clip_norm = 0.5
learning_rate = 1.0
"""
COLUMNS = "age = { min = 17.25, max = 88.75 }\nstay = { min = 5.375, max = 41.5 }\n"
TAKEN = f"taken_from_data = true\n[columns]\n{COLUMNS}"
INLINE = f"{{ taken_from_data = true, columns = {{ {', '.join(COLUMNS.splitlines())} }} }}"
WARNING = "The ranges that scale the columns were taken from the data (taken_from_data = true)"
REMEDY = "Replace them by publicly known ranges and delete the line taken_from_data"
ACCEPT = "--accept-data-ranges"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an experiment whose ranges were taken from its table."""
    rows = [f"{'north' if age % 2 else 'south'},{age},{age / 2}" for age in range(20, 40)]
    (tmp_path / "visits.csv").write_text("\n".join(["hospital,age,stay", *rows]) + "\n")
    (tmp_path / "ranges.toml").write_text(TAKEN)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("line", ["run experiment.toml --out out", "compare experiment.toml --seeds 1 --out out"])
def test_training_on_them_is_refused_until_it_is_accepted(line: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(line.split()) == InvalidInput.exit_code
    said = words(capsys.readouterr().err)
    assert WARNING in said
    assert REMEDY in said
    assert ACCEPT in said
    assert not (folder / "out").exists()
    assert run([*line.split(), ACCEPT]) == 0


def test_the_warning_stands_next_to_the_promise_at_the_start_and_at_the_end(capsys: pytest.CaptureFixture[str]):
    assert run(["run", "experiment.toml", "--out", "out", ACCEPT]) == 0
    told = capsys.readouterr()
    assert f"Warning: {WARNING}" in words(told.err)
    assert f"Warning: {WARNING}" in words(told.out)


def test_the_card_never_calls_them_public(folder: Path):
    assert run(["run", "experiment.toml", "--out", "out", ACCEPT]) == 0
    written = words((folder / "out" / "guarantee.txt").read_text())
    assert "they were taken from the data, and reveal" in written
    assert "ranges are public" not in written
    assert "public ranges" not in written
    assert "nothing was fitted" not in written


@pytest.mark.parametrize("inline", [False, True], ids=["in a file", "in the experiment"])
def test_the_public_report_holds_no_bound_that_was_taken_from_the_data(inline: bool, folder: Path):
    if inline:
        (folder / "experiment.toml").write_text(EXPERIMENT.replace('"ranges.toml"', INLINE))
    assert run(["run", "experiment.toml", "--out", "out", ACCEPT]) == 0
    assert run(["report", "out", "--public"]) == 0
    page = (folder / "out" / "report-public.html").read_text()
    shown = re.sub(r' (d|x|y|[xy][12]|transform|viewBox|style)="[^"]*"', "", page)  # where a chart draws what it shows
    for bound in ("17.25", "88.75", "5.375", "5.37", "5.38", "41.5"):
        assert not re.search(rf"(?<![\d.]){re.escape(bound)}(?!\d)", shown)
    assert WARNING in words(page)
    assert "nothing was fitted" not in page
    assert "ranges are public" not in words(page)


def test_the_plan_warns_and_refuses_nothing(capsys: pytest.CaptureFixture[str]):
    assert run(["plan", "experiment.toml"]) == 0
    assert f"Warning: {WARNING}" in words(capsys.readouterr().out)


def test_a_comparison_says_so_under_its_table(capsys: pytest.CaptureFixture[str]):
    assert run(["compare", "experiment.toml", "--seeds", "1", "--out", "out", ACCEPT]) == 0
    assert "Ranges were taken from the data" in words(capsys.readouterr().out)


def test_public_ranges_need_no_word(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "ranges.toml").write_text(f"[columns]\n{COLUMNS}")
    assert run(["run", "experiment.toml", "--out", "out"]) == 0
    told = capsys.readouterr()
    assert "taken from the data" not in words(told.out + told.err)
    assert "The ranges are public." in words(told.out)


def test_python_accepts_them_by_an_argument(folder: Path):
    task = discreet.clients_from_csv("visits.csv", client="hospital", label="stay", ranges="ranges.toml")
    settings: dict[str, Any] = {
        "rounds": 1,
        "algorithm": discreet.pfl(noise_multiplier=2.0, sampling_rate=0.5, clip_norm=0.5, learning_rate=1.0),
    }
    with pytest.raises(InvalidInput, match="accept_data_ranges=True"):
        discreet.train(torch.nn.Linear(1, 1), task, out=folder / "out", **settings)
    assert not (folder / "out").exists()
    done = discreet.train(torch.nn.Linear(1, 1), task, out=folder / "out", accept_data_ranges=True, **settings)
    assert done.rounds == 1


def stop_after_a_round(folder: Path, *, accept: bool) -> None:
    """Start a run of two rounds that is interrupted in the first, as by Ctrl-C."""
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("rounds = 1", "rounds = 2"))
    job = api.prepare_job(experiment_file.load_experiment(folder / "experiment.toml"), accept_data_ranges=accept)
    stopped = loop.start(job, folder / "out", None, None, lambda line: os.kill(os.getpid(), signal.SIGINT))
    assert stopped.completed == 1


def test_a_run_that_was_accepted_goes_on_without_another_word(folder: Path, capsys: pytest.CaptureFixture[str]):
    stop_after_a_round(folder, accept=True)
    assert run(["run", "--resume", "out"]) == 0
    told = capsys.readouterr()
    assert f"Warning: {WARNING}" in words(told.err)
    assert f"Warning: {WARNING}" in words(told.out)


def test_a_run_on_public_ranges_does_not_go_on_with_others(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "ranges.toml").write_text(f"[columns]\n{COLUMNS}")
    stop_after_a_round(folder, accept=False)
    (folder / "ranges.toml").write_text(TAKEN)
    assert run(["run", "--resume", "out"]) == InvalidInput.exit_code
    assert WARNING in words(capsys.readouterr().err)
