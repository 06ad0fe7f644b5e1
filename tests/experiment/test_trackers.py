"""Trackers get every number of a run, marked where no guarantee covers it, and can neither stop nor lose a run."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import discreet
from discreet.errors import InvalidInput, MissingExtra
from discreet.experiment.comparison.cells import expand_cells, list_runs
from discreet.experiment.loop import training_loop
from discreet.experiment.tracking import any_tracker
from discreet.experiment.tracking.any_tracker import CsvTracker, MlflowTracker, TensorBoardTracker, parse_tracker
from discreet.experiment.tracking.number_files import CsvFile, JsonLinesFile
from discreet.experiment.tracking.number_writer import TrackedRun, round_numbers
from tests.small_experiment import PrepareJob

RECORD = {
    "round": 2,
    "clients": 3,
    "epsilon": 1.5,
    "evaluation": {"accuracy": 0.8, "loss": "nan"},
    "validation": {"accuracy": 0.7},
    "code": "0.3.0",
    "revealed": True,
}


def silent(line: object) -> None:
    pass


def train(job: Any, folder: Path) -> Any:
    return training_loop.start(job, folder, None, None, silent)


def read_csv(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_number_but_epsilon_is_marked_as_not_covered_and_can_be_left_out():
    numbers = round_numbers(RECORD, uncovered=True)
    assert numbers.pop("uncovered/evaluation/loss") != numbers["epsilon"]  # NaN
    assert numbers == {
        "epsilon": 1.5,
        "uncovered/clients": 3.0,
        "uncovered/evaluation/accuracy": 0.8,
        "uncovered/validation/accuracy": 0.7,
    }
    assert round_numbers(RECORD, uncovered=False) == {"epsilon": 1.5}


def test_files_hold_what_the_records_of_the_rounds_hold(prepare: PrepareJob, tmp_path: Path):
    job = prepare("seed=1", 'track=[{kind="csv"},{kind="json_lines",uncovered=false}]', "task.validation_fraction=0.2")
    train(job, tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / "rounds.jsonl").read_text().splitlines()]
    table = read_csv(tmp_path / "run" / "metrics.csv")
    assert [int(line["round"]) for line in table] == [1, 2, 3, 4]
    assert table[0]["uncovered/evaluation/accuracy"] == ""  # it is evaluated every second round
    for at in (1, 3):
        assert float(table[at]["uncovered/evaluation/accuracy"]) == records[at]["evaluation"]["accuracy"]
        assert float(table[at]["uncovered/validation/loss"]) == records[at]["validation"]["loss"]
        assert float(table[at]["epsilon"]) == records[at]["epsilon"]
    *lines, last = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines == [{"round": 1}, {"round": 2, "epsilon": records[1]["epsilon"]}, {"round": 3}, lines[3]]
    assert "one example" in last["finished"]["guarantee"]


def test_a_resumed_run_goes_on_in_its_files_and_replaces_rounds_that_are_played_again(tmp_path: Path):
    for kind, path in ((CsvFile, tmp_path / "a.csv"), (JsonLinesFile, tmp_path / "a.jsonl")):
        first = kind(path, TrackedRun(tmp_path, 1, 9))
        for round in (1, 2, 3):
            first.write(round, {"epsilon": 0.1 * round})
        again = kind(path, TrackedRun(tmp_path, 3, 9))
        again.write(3, {"epsilon": 7.0, "uncovered/loss": 1.0})
        again.finish({})
    assert [(line["round"], line["epsilon"]) for line in read_csv(tmp_path / "a.csv")] == [
        ("1", "0.1"),
        ("2", "0.2"),
        ("3", "7.0"),
    ]
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [line.get("epsilon") for line in lines] == [0.1, 0.2, 7.0, None]


def test_a_stopped_run_is_resumed_with_its_trackers(prepare: PrepareJob, tmp_path: Path):
    whole, job = prepare("seed=1", 'track=[{kind="csv"}]'), prepare("seed=1", 'track=[{kind="csv"}]')
    train(whole, tmp_path / "whole")
    loop = training_loop.start_loop(job, tmp_path / "run", None, None)
    with loop:
        loop.play_round()
        loop.play_round()
    training_loop.resume(job, loop.record, None, silent)
    both = [read_csv(tmp_path / name / "metrics.csv") for name in ("whole", "run")]
    timeless = [[{k: v for k, v in line.items() if k != "uncovered/seconds"} for line in table] for table in both]
    assert timeless[0] == timeless[1]


def test_tensorboard_shows_the_scalars_of_every_round(prepare: PrepareJob, tmp_path: Path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    record = TensorBoardTracker(to=str(tmp_path / "board"))
    job = prepare("seed=1", f'track=[{{kind="tensorboard",to="{record.to}"}}]')
    ended = train(job, tmp_path / "run")
    events = accumulator.EventAccumulator(str(tmp_path / "board" / "run"))
    events.Reload()
    accuracy = events.Scalars("uncovered/evaluation/accuracy")
    assert [event.step for event in accuracy] == [2, 4]
    assert accuracy[-1].value == pytest.approx(ended.metrics["accuracy"])
    assert "epsilon" in events.Tags()["scalars"]
    assert "guarantee/text_summary" in events.Tags()["tensors"]


@pytest.mark.filterwarnings("ignore")  # of MLflow's own imports
def test_mlflow_gets_the_metrics_of_every_round_and_the_guarantee(
    prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tracking = pytest.importorskip("mlflow.tracking")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    address = (tmp_path / "store").as_uri()
    job = prepare("seed=1", f'track=[{{kind="mlflow",to="{address}",experiment="small",uncovered=false}}]')
    ended = train(job, tmp_path / "run")
    client = tracking.MlflowClient(tracking_uri=address)
    (run,) = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    assert (tmp_path / "run" / "mlflow_run.txt").read_text().strip() == run.info.run_id
    assert (run.info.status, run.info.run_name, run.data.params) == ("FINISHED", "run", {"rounds": "4"})
    assert run.data.metrics == {"epsilon": pytest.approx(ended.guarantees[0].epsilon)}
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "epsilon")] == [2, 4]
    assert "seed" in run.data.tags["guarantee"]


@pytest.mark.filterwarnings("ignore")  # of MLflow's own imports
def test_a_resumed_run_goes_on_in_the_same_run_of_mlflow(
    prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tracking = pytest.importorskip("mlflow.tracking")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    address = (tmp_path / "store").as_uri()
    job = prepare("seed=1", f'track=[{{kind="mlflow",to="{address}"}}]')
    loop = training_loop.start_loop(job, tmp_path / "run", None, None)
    with loop:
        loop.play_round()
        loop.play_round()
    client = tracking.MlflowClient(tracking_uri=address)
    (before,) = client.search_runs([client.get_experiment_by_name("discreet").experiment_id])
    assert before.info.status == "KILLED"
    training_loop.resume(job, loop.record, None, silent)
    (after,) = client.search_runs([before.info.experiment_id])
    assert (after.info.run_id, after.info.status) == (before.info.run_id, "FINISHED")
    assert [metric.step for metric in client.get_metric_history(after.info.run_id, "epsilon")] == [2, 4]


@pytest.mark.parametrize("method", ["__init__", "write", "finish", "close"])
def test_a_tracker_that_fails_gets_a_warning_and_the_run_is_complete(
    prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
):
    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(CsvFile, method, fail)
    with pytest.warns(RuntimeWarning, match=r"tracker csv .*disk full"):
        ended = train(prepare("seed=1", 'track=[{kind="csv"},{kind="json_lines"}]'), tmp_path / "run")
    assert (ended.completed, ended.stopped) == (4, None)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 5  # the other tracker goes on


@pytest.mark.parametrize(("kind", "library"), [("tensorboard", "tensorboard"), ("mlflow", "mlflow")])
def test_a_missing_extra_is_named_before_anything_is_written(
    prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, library: str
):
    monkeypatch.setattr(any_tracker, "is_installed", lambda name: name != library)
    with pytest.raises(MissingExtra, match=rf"The tracker {kind} needs {library}.*pip install 'discreet\[{kind}\]'"):
        train(prepare(f'track=[{{kind="{kind}"}}]'), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(MissingExtra, match=kind):
        discreet.tracker(kind)


def test_a_file_of_another_run_is_not_overwritten(prepare: PrepareJob, tmp_path: Path):
    (tmp_path / "m.csv").write_text("years of work\n")
    with pytest.raises(InvalidInput, match=r"m\.csv, which exists already"):
        train(prepare(f'track=[{{kind="csv",to="{tmp_path / "m.csv"}"}}]'), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InvalidInput, match="there is no folder"):
        CsvTracker(to=str(tmp_path / "none" / "m.csv")).check(is_new=True)


def test_a_tracker_may_be_one_of_the_callbacks_of_train(tmp_path: Path):
    inputs, targets = torch.randn(12, 2, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 2
    task = discreet.clients_from_arrays(inputs, targets, sizes=[6, 6], classes=2, test=(inputs, targets))
    arguments: dict[str, Any] = {
        "rounds": 2,
        "algorithm": discreet.fedavg(learning_rate=0.1, batch_size=3, epochs=1),
        "seed": 0,
    }
    tracked = discreet.tracker("csv", to=str(tmp_path / "called.csv"))
    net = torch.nn.Linear(2, 2)
    discreet.train(net, task, out=tmp_path / "a", callbacks=[tracked], **arguments)
    run = discreet.train(net, task, out=tmp_path / "b", track=[{"kind": "csv"}], **arguments)
    tables = [read_csv(path) for path in (tmp_path / "called.csv", tmp_path / "b" / "metrics.csv")]
    assert len(tables[0]) == 2
    for one, other in zip(*tables, strict=True):
        assert one | {"uncovered/seconds": ""} == other | {"uncovered/seconds": ""}
    assert float(tables[0][-1]["uncovered/evaluation/loss"]) == run.metrics["loss"]


def test_a_comparison_has_no_trackers_and_uses_results_again_whatever_they_are(small: Path):
    keys = []
    for setting in ("track=[]", 'track=[{kind="csv"}]'):
        (run,) = list_runs(expand_cells([small], overrides=(setting,)), seeds=1)
        assert run.source.experiment.track == ()
        keys.append(run.key)
    assert keys[0] == keys[1]


def test_what_is_wrong_with_a_tracker_is_one_sentence():
    assert parse_tracker("tensorboard=runs/tb") == TensorBoardTracker(to="runs/tb")
    with pytest.raises(InvalidInput, match="--track needs KIND or KIND=PLACE, and got 'csv='"):
        parse_tracker("csv=")
    with pytest.raises(InvalidInput, match="'tensorboard'"):
        parse_tracker("wandb")
    with pytest.raises(InvalidInput, match="must not hold a password"):
        MlflowTracker(to="https://me:secret@mlflow.example.org")
