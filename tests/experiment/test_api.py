"""The Python API: training and loading in a few lines."""

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import discreet as d
from discreet.data.tasks.task import Task
from discreet.errors import BudgetRefused, InvalidInput

PFL = d.pfl(local_steps=1, sampling_rate=0.2, clip_norm=1.0, learning_rate=1.0)
PROMISE = d.Privacy(unit="example", against="server", epsilon=8, delta=1e-4)


@pytest.fixture
def clients() -> Task:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(300, 4, generator=generator)
    labels = (inputs.sum(dim=1) > 0).to(torch.int64)
    train, test = slice(0, 240), slice(240, 300)
    return d.clients_from_arrays(inputs[train], labels[train], sizes=[80] * 3, test=(inputs[test], labels[test]))


def test_ten_lines_train_a_module_of_ones_own(clients: Task, tmp_path: Path):
    net = nn.Linear(4, 2)
    before = net.weight.detach().clone()
    run = d.train(net, clients, rounds=20, algorithm=PFL, privacy=PROMISE, seed=1, out=tmp_path / "run")
    assert run.guarantee is not None
    assert 7.9 < run.guarantee.epsilon <= 8
    assert run.metrics["accuracy"] > 0.85
    assert (run.rounds, len(run.history), run.stopped, run.directory) == (20, 20, None, tmp_path / "run")
    assert (run.directory / "report.html").is_file()
    assert torch.equal(net.weight, before)  # the user's own is never changed
    assert type(run.model) is nn.Linear
    inputs, targets = clients.test_inputs, clients.test_targets
    assert float((run.model(inputs).argmax(dim=1) == targets).double().mean()) == run.metrics["accuracy"]


def test_a_run_is_opened_again_with_its_module(clients: Task, tmp_path: Path):
    run = d.train(nn.Linear(4, 2), clients, rounds=2, algorithm=PFL, privacy=PROMISE, out=tmp_path / "run")
    again = d.load(tmp_path / "run", module=nn.Linear(4, 2))
    assert (again.metrics, again.guarantees, again.history) == (run.metrics, run.guarantees, run.history)
    assert torch.equal(again.model(clients.test_inputs), run.model(clients.test_inputs))
    with pytest.raises(InvalidInput, match="Pass it"):
        _ = d.load(tmp_path / "run").model


def test_a_run_that_diverged_has_numbers_for_metrics_and_a_warning(clients: Task, tmp_path: Path):
    algorithm = d.fedavg(learning_rate=1e300, batch_size=16)
    with pytest.warns(RuntimeWarning, match="The model has diverged: its loss is not a finite number"):
        run = d.train(nn.Linear(4, 2), clients, rounds=3, algorithm=algorithm, seed=1, out=tmp_path / "run")
    for each in (run, d.load(tmp_path / "run", module=nn.Linear(4, 2))):
        assert math.isnan(each.metrics["loss"])
        assert math.isnan(each.history[-1]["evaluation"]["loss"])


def test_own_loss_and_metric(clients: Task, tmp_path: Path):
    def smooth_loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs, targets, label_smoothing=0.1)

    def positives(outputs: Tensor, targets: Tensor) -> float:
        return float((outputs.argmax(dim=1) == 1).double().mean())

    algorithm = d.fedavg(learning_rate=0.1, batch_size=16)
    run = d.train(
        nn.Linear(4, 2),
        clients,
        rounds=3,
        algorithm=algorithm,
        loss=smooth_loss,
        metric=positives,
        out=tmp_path / "run",
    )
    assert run.guarantee is None
    assert 0 < run.metrics["positives"] < 1


def test_a_run_made_in_python_is_resumed_in_python(clients: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    net = nn.Linear(4, 2)
    given: dict[str, Any] = {"rounds": 5, "algorithm": PFL, "privacy": PROMISE, "seed": 3}
    whole = d.train(net, clients, **given, out=tmp_path / "whole")
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            d.train(net, clients, **given, out=tmp_path / "run")
    with pytest.raises(InvalidInput, match="another experiment"):
        d.train(net, clients, **{**given, "rounds": 6}, resume=tmp_path / "run")
    resumed = d.train(net, clients, **given, resume=tmp_path / "run")
    assert (resumed.rounds, resumed.metrics) == (5, whole.metrics)


def test_a_run_without_a_seed_goes_on_with_its_own_key(clients: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two copies of a stopped run end in the same bytes: a repeated round has the same noise."""
    net, given = nn.Linear(4, 2), {"rounds": 3, "algorithm": PFL, "privacy": PROMISE}
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            d.train(net, clients, **given, out=tmp_path / "run", key_dir=tmp_path / "keys")
    models = []
    for copy in ("one", "two"):
        shutil.copytree(tmp_path / "run", tmp_path / copy)
        shutil.copytree(tmp_path / "keys", tmp_path / f"{copy} keys")
        assert d.train(net, clients, **given, resume=tmp_path / copy, key_dir=tmp_path / f"{copy} keys").rounds == 3
        models.append((tmp_path / copy / "model.safetensors").read_bytes())
    assert models[0] == models[1]


def test_an_experiment_from_a_file_is_opened_with_its_model(small: Path, tmp_path: Path):
    from discreet import api
    from discreet.experiment.configuration import experiment_file
    from discreet.experiment.loop import training_loop

    ended = training_loop.start(
        api.prepare_job(experiment_file.load_experiment(small)), tmp_path / "run", None, None, lambda line: None
    )
    opened = d.load(tmp_path / "run")
    assert opened.metrics == ended.metrics
    assert opened.model(torch.zeros(1, 64)).shape == (1, 10)


def test_a_ledger_may_be_named(clients: Task, tmp_path: Path):
    from discreet.privacy.ledger import Budget, Ledger

    ledger = tmp_path / "data.jsonl"
    Ledger.create(ledger, [Budget(unit="example", relation="zero_out", view="server", epsilon=0.1, delta=1e-4)])
    with pytest.raises(BudgetRefused):
        d.train(nn.Linear(4, 2), clients, rounds=5, algorithm=PFL, privacy=PROMISE, out=tmp_path / "run", ledger=ledger)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rounds": 0}, "at least 1"),
        ({"rounds": 2, "seed": -1}, "at least 0"),
        ({"rounds": 2, "privacy": None}, "noise is open"),
        ({"rounds": 2, "evaluate_every": 0}, "at least 1"),
        ({"rounds": 2, "device": "tpu"}, "'auto', 'cpu' or 'cuda'"),
    ],
)
def test_what_is_wrong_is_a_sentence_and_nothing_is_written(
    wrong: dict[str, object], said: str, clients: Task, tmp_path: Path
):
    given: dict[str, Any] = {"algorithm": PFL, "privacy": PROMISE, **wrong}
    with pytest.raises(InvalidInput, match=said):
        d.train(nn.Linear(4, 2), clients, out=tmp_path / "run", **given)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_without_a_place_a_run_goes_under_runs(clients: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run = d.train(nn.Linear(4, 2), clients, rounds=1, algorithm=PFL, privacy=PROMISE, progress=True)
    assert run.directory.parent == Path("runs")


def test_what_there_is_can_be_listed_and_nothing_else_is_there():
    assert {"train", "load", "Privacy", "pfl"} <= set(dir(d))
    assert all(getattr(d, name) for name in d.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fly'"):
        _ = d.fly  # type: ignore[attr-defined]


class OwnNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.last(self.first(inputs).relu())
        return outputs


@pytest.mark.parametrize(
    ("module", "said"),
    [(nn.Linear(4, 3), "runs only torch's own layers"), (OwnNet(), "gets one example at a time")],
)
def test_the_card_of_an_own_model_says_what_was_verified(module: nn.Module, said: str, tmp_path: Path):
    torch.manual_seed(0)
    clients = d.clients_from_arrays(torch.randn(20, 4), torch.arange(20) % 3, sizes=[10, 10], classes=3)
    algorithm = d.pfl(local_steps=1, sampling_rate=0.5, clip_norm=0.5, learning_rate=1.0, noise_multiplier=1.0)
    run = d.train(module, clients, rounds=1, algorithm=algorithm, out=tmp_path / "run")
    (sentence,) = [each for each in run.guarantee.assumptions if "was verified before training" in each]
    assert "on cpu in float32" in sentence
    assert said in sentence
