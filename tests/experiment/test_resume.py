"""A run is resumed only with the data and the code that it was started with.

Its noise is a function of its key: on other data, or by other code, the same noise would be added to other numbers,
and their difference would contain none.
"""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import discreet as d
from discreet import api
from discreet.code_version import CodeVersion, read_code_version
from discreet.data.federation import Federation
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.experiment.job import Job
from discreet.experiment.loop import round_player, training_loop
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.run_directory import fingerprint, run_keys
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy import guarantee
from discreet.privacy.ledger import Budget, Ledger, log
from discreet.randomness.streams import RunKey
from discreet.trust import Trust
from tests.small_experiment import PrepareJob

PFL = d.pfl(local_steps=1, sampling_rate=0.2, clip_norm=1.0, learning_rate=1.0)
PROMISE = d.Privacy(unit="example", against="server", epsilon=8, delta=1e-4)
SIZES = [60, 80, 100]
NET = """\
from torch import nn

WIDTH = 16


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(64, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 10))
"""
LOSS = """\
from torch.nn.functional import cross_entropy


def loss(outputs, targets):
    return cross_entropy(outputs, targets, label_smoothing=0.1)
"""


class Crash(BaseException):
    """Stands for a process that is killed: nothing catches it."""


def die(line: dict[str, Any]) -> None:
    raise Crash


def ignore(line: dict[str, Any]) -> None:
    pass


def arrays() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(300, 4, generator=generator)
    return inputs, (inputs.sum(dim=1) > 0).to(torch.int64)


def task(inputs: Tensor, labels: Tensor, sizes: list[int] = SIZES) -> Task:
    """Return a task with 240 training examples and 60 test examples."""
    return d.clients_from_arrays(inputs[:240], labels[:240], sizes=sizes, test=(inputs[240:], labels[240:]))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def train(clients: Task, net: nn.Module, **more: Any) -> d.Run:
    return d.train(net, clients, **{"rounds": 4, "algorithm": PFL, "privacy": PROMISE, **more})


@pytest.fixture
def net() -> nn.Module:
    return nn.Linear(4, 2)


@pytest.fixture
def stopped_run(tmp_path: Path, net: nn.Module, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run from Python, without a seed, that died after its first round; it charges a ledger of the data."""
    Ledger.create(
        tmp_path / "data.jsonl",
        [Budget(unit="example", relation="zero_out", view="server", epsilon=20, delta=1e-4)],
        "filter",
    )
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", lambda *_: die({}))
        with pytest.raises(Crash):
            train(task(*arrays()), net, out=tmp_path / "run", ledger=tmp_path / "data.jsonl")
    return tmp_path


def assert_refused(folder: Path, why: str, go_on: Callable[[], object]) -> None:
    """Check that the call is refused for this reason, and that no byte of the run, its key or a ledger has changed."""
    before = files(folder)
    with pytest.raises(InvalidInput, match=why) as caught:
        go_on()
    assert caught.value.exit_code == 2
    assert "start a new run, which spends its budget anew" in caught.value.fix
    assert files(folder) == before


def test_an_unseeded_run_with_the_same_data_and_code_goes_on(stopped_run: Path, net: nn.Module):
    ended = train(task(*arrays()), net, resume=stopped_run / "run")
    assert (ended.rounds, ended.stopped) == (4, None)
    spent = Ledger.open(stopped_run / "data.jsonl").summary()["releases"]
    assert spent == {"committed": 4, "reserved": 0, "voided": 0}


def one_label(inputs: Tensor, labels: Tensor) -> Task:
    labels[7] = 1 - labels[7]
    return task(inputs, labels)


def one_input(inputs: Tensor, labels: Tensor) -> Task:
    inputs[7, 2] += 1e-3
    return task(inputs, labels)


def two_clients_in_another_order(inputs: Tensor, labels: Tensor) -> Task:
    order = torch.cat([torch.arange(60, 120), torch.arange(60), torch.arange(120, 300)])
    return task(inputs[order], labels[order])


@pytest.mark.parametrize("changed", [one_label, one_input, two_clients_in_another_order])
def test_other_training_data_is_refused(changed: Callable[[Tensor, Tensor], Task], stopped_run: Path, net: nn.Module):
    assert_refused(
        stopped_run,
        "was started with other training data, and can't go on",
        lambda: train(changed(*arrays()), net, resume=stopped_run / "run"),
    )


def test_an_example_that_moved_to_another_client_is_refused(stopped_run: Path, net: nn.Module):
    other = task(*arrays(), sizes=[61, 79, 100])
    assert_refused(
        stopped_run, "was started with .*other training data", lambda: train(other, net, resume=stopped_run / "run")
    )


def test_other_test_data_is_refused(stopped_run: Path, net: nn.Module):
    inputs, labels = arrays()
    labels[250] = 1 - labels[250]
    assert_refused(
        stopped_run, "with other test data", lambda: train(task(inputs, labels), net, resume=stopped_run / "run")
    )


def test_another_experiment_is_refused(stopped_run: Path, net: nn.Module):
    assert_refused(
        stopped_run, "another experiment", lambda: train(task(*arrays()), net, rounds=5, resume=stopped_run / "run")
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 5}, r"another experiment \(rounds: 4, now 5.*its noise would be added to other numbers too"),
        (
            {"algorithm": d.pfl(local_steps=1, sampling_rate=0.2, clip_norm=1.0, learning_rate=2.0)},
            r"another experiment \(algorithm\.trainer\.learning_rate: 1\.0, now 2\.0\).* noise would",
        ),
        ({"evaluate_every": 3}, r"another experiment \(evaluate_every: .*, now 3\).*: this changes no sum, but"),
        ({"evaluate_every": 3, "rounds": 5}, "its noise would be added to other numbers too"),
    ],
)
def test_the_setting_that_differs_is_named_with_the_reason(
    change: dict[str, Any], words: str, stopped_run: Path, net: nn.Module
):
    assert_refused(stopped_run, words, lambda: train(task(*arrays()), net, **change, resume=stopped_run / "run"))


def test_another_seed_is_the_one_reason_that_is_given(tmp_path: Path, net: nn.Module, monkeypatch: pytest.MonkeyPatch):
    """All digests differ under another key and don't show what changed."""
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", lambda *_: die({}))
        with pytest.raises(Crash):
            train(task(*arrays()), net, out=tmp_path / "run", seed=1)
    assert_refused(
        tmp_path,
        "was started with another seed or key, and can't go on",
        lambda: train(task(*arrays()), net, resume=tmp_path / "run", seed=2),
    )


def smooth(share: float) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda outputs, targets: nn.functional.cross_entropy(outputs, targets, label_smoothing=share)


def test_a_loss_that_does_something_else_is_refused_and_the_same_again_goes_on(
    tmp_path: Path, net: nn.Module, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", lambda *_: die({}))
        with pytest.raises(Crash):
            train(task(*arrays()), net, loss=smooth(0.1), out=tmp_path / "run")
    assert_refused(
        tmp_path,
        "with another loss, metric or Python file of its own",
        lambda: train(task(*arrays()), net, loss=smooth(0.2), resume=tmp_path / "run"),
    )
    assert train(task(*arrays()), net, loss=smooth(0.1), resume=tmp_path / "run").rounds == 4


def test_after_a_checkpoint_a_module_may_come_with_other_first_weights(
    tmp_path: Path, net: nn.Module, monkeypatch: pytest.MonkeyPatch
):
    """The checkpoint holds the weights, so the run ends in the same bits; a script that builds a new module in
    each process could otherwise never resume."""
    whole = train(task(*arrays()), net, out=tmp_path / "whole", seed=1)
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", lambda *_: die({}))
        with pytest.raises(Crash):
            train(task(*arrays()), net, out=tmp_path / "run", seed=1)
    train(task(*arrays()), nn.Linear(4, 2), resume=tmp_path / "run", seed=1)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (whole.directory / "model.safetensors").read_bytes()


def test_before_a_checkpoint_other_first_weights_are_refused(
    tmp_path: Path, net: nn.Module, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.save_checkpoint", lambda *_: die({}))
        with pytest.raises(Crash):
            train(task(*arrays()), net, out=tmp_path / "run")
    assert_refused(
        tmp_path,
        "with other first weights of its model",
        lambda: train(task(*arrays()), nn.Linear(4, 2), resume=tmp_path / "run"),
    )
    assert train(task(*arrays()), net, resume=tmp_path / "run").rounds == 4


def test_a_model_with_other_frozen_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    frozen = nn.Sequential(nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 2))
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", lambda *_: die({}))
        with pytest.raises(Crash):
            train(task(*arrays()), frozen, out=tmp_path / "run")
    with torch.no_grad():
        frozen[0].weight[0, 0] += 1
    assert_refused(
        tmp_path,
        r"with another model \(its layers, its code or its frozen weights\)",
        lambda: train(task(*arrays()), frozen, resume=tmp_path / "run"),
    )


class Smooth:
    def __init__(self, share: float) -> None:
        self.share = share

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs, targets, label_smoothing=self.share)


def smooth_partial(share: float) -> Callable[[Tensor, Tensor], Tensor]:
    return partial(nn.functional.cross_entropy, label_smoothing=share)


@pytest.mark.parametrize("make", [Smooth, smooth_partial])
def test_a_loss_without_a_name_goes_on_if_it_is_the_same_and_is_refused_if_not(
    make: Callable[[float], Callable[[Tensor, Tensor], Tensor]],
    tmp_path: Path,
    net: nn.Module,
    monkeypatch: pytest.MonkeyPatch,
):
    first = make(0.1)  # kept alive, so that the second is at another address
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", lambda *_: die({}))
        with pytest.raises(Crash):
            train(task(*arrays()), net, loss=first, out=tmp_path / "run")
    assert_refused(
        tmp_path,
        "with another loss, metric or Python file of its own, and can't",
        lambda: train(task(*arrays()), net, loss=make(0.2), resume=tmp_path / "run"),
    )
    assert train(task(*arrays()), net, loss=make(0.1), resume=tmp_path / "run").rounds == 4


@pytest.mark.parametrize("seed", [None, 1])
def test_a_finished_run_says_from_python_that_it_is_finished(seed: int | None, tmp_path: Path, net: nn.Module):
    train(task(*arrays()), net, out=tmp_path / "run", seed=seed)
    before = files(tmp_path)
    with pytest.raises(InvalidInput, match=r"The run in .* is finished\."):
        train(task(*arrays()), net, resume=tmp_path / "run", seed=seed)
    assert files(tmp_path) == before


@pytest.mark.parametrize("model", ["net.py:Net", "net.py:make"])
def test_a_file_that_a_file_of_its_own_imports_through_another_is_refused_if_it_changed(
    model: str, tmp_path: Path, prepare: PrepareJob, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "resume_deep.py").write_text("def squash(values):\n    return values.tanh()\n")
    (tmp_path / "resume_blocks.py").write_text("from resume_deep import squash\n")
    (tmp_path / "net.py").write_text(
        "import resume_blocks\n"
        "from torch import nn\n\n\n"
        "class Net(nn.Linear):\n"
        "    def __init__(self):\n"
        "        super().__init__(64, 10)\n\n"
        "    def forward(self, inputs):\n"
        "        return resume_blocks.squash(super().forward(inputs))\n\n\n"
        "def make():\n"
        "    return nn.Linear(64, 10)\n"
    )
    job = prepare(f'model={{kind="{model}"}}')
    with pytest.raises(Crash):
        training_loop.start(job, tmp_path / "run", None, None, die)
    (tmp_path / "resume_deep.py").write_text("def squash(values):\n    return values.relu()\n")
    assert_refused(tmp_path, "Python file of its own", lambda: go_on(tmp_path))
    (tmp_path / "resume_deep.py").write_text("def squash(values):\n    return values.tanh()\n")
    go_on(tmp_path)
    for name in ("resume_deep", "resume_blocks"):
        sys.modules.pop(name)


@pytest.fixture
def from_file(tmp_path: Path, prepare: PrepareJob) -> Path:
    """A run from a file, with its own model and loss, that died after its first round."""
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "loss.py").write_text(LOSS)
    job = prepare('model={kind="net.py:Net"}', 'loss="loss.py:loss"')
    with pytest.raises(Crash):
        training_loop.start(job, tmp_path / "run", None, None, die)
    return tmp_path


def go_on(folder: Path) -> Outcome:
    job, record = api.reopen_run(folder / "run", None, trust=Trust.all_code())
    return training_loop.resume(job, record, None, ignore)


def test_a_run_from_a_file_goes_on_with_its_own_python(from_file: Path):
    go_on(from_file)
    assert RunRecord.open(from_file / "run").is_finished()


@pytest.mark.parametrize(
    ("file", "old", "new", "why"),
    [
        ("loss.py", "0.1", "0.2", "with another loss, metric or Python file of its own, and can't go on"),
        ("net.py", "nn.Tanh()", "nn.ReLU()", "with another model .* and another loss, metric or Python file"),
        ("net.py", "WIDTH = 16", "WIDTH = 8", "with another model .* and another loss, metric or Python file"),
    ],
)
def test_a_file_of_its_own_that_changed_is_refused(file: str, old: str, new: str, why: str, from_file: Path):
    text = (from_file / file).read_text()
    assert old in text
    (from_file / file).write_text(text.replace(old, new))
    assert_refused(from_file, why, lambda: go_on(from_file))


def test_a_resolved_experiment_that_changed_before_the_first_checkpoint_is_refused(
    tmp_path: Path, prepare: PrepareJob, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.save_checkpoint", lambda *_: die({}))
        with pytest.raises(Crash):
            training_loop.start(prepare(), tmp_path / "run", None, None, ignore)
    resolved = tmp_path / "run" / "resolved.toml"
    resolved.write_text(resolved.read_text().replace("learning_rate = 4.0", "learning_rate = 8.0"))
    assert_refused(tmp_path, "with another experiment, and can't go on", lambda: go_on(tmp_path))


def test_another_source_of_discreet_is_refused(from_file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fingerprint, "discreet_source", lambda: "another one")
    assert_refused(
        from_file,
        r"with another source code of discreet \(discreet .*, commit .*; this is discreet .*\), and can't",
        lambda: go_on(from_file),
    )


def test_another_commit_with_the_same_source_goes_on_and_the_card_names_both(
    from_file: Path, monkeypatch: pytest.MonkeyPatch
):
    started = read_code_version()
    later = CodeVersion(f"{started.release}.dev9999+g{'7' * 9}", "7" * 40, False)
    for module in (guarantee, log, training_loop, round_player, fingerprint):
        monkeypatch.setattr(module, "read_code_version", lambda: later)
    outcome = go_on(from_file)
    rounds = [line["code"] for line in RunRecord.open(from_file / "run").read_rounds()]
    assert set(rounds) == {started.stamp, later.stamp}
    card = outcome.guarantees[0]
    assert (card.code, card.other_code) == (later, (started.stamp,))
    told = json.loads((from_file / "run" / "guarantee.json").read_text())
    assert told["code"] == [started.stamp, later.stamp]
    assert [writer["code"] for writer in told["ledger"]["code"]] == [started.stamp, later.stamp]


def edit_run_file(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Edit run.json, as another version would have written it."""
    path = folder / "run" / "run.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def test_a_run_of_a_version_without_fingerprints_is_refused_for_its_version(from_file: Path):
    v = re.escape(d.__version__)
    edit_run_file(from_file, lambda data: data.pop("fingerprint"))
    assert_refused(
        from_file,
        rf"by another version of discreet \({v}\), which kept no fingerprint of data and code that this one \({v}\)",
        lambda: go_on(from_file),
    )
    assert RunRecord.open(from_file / "run").read_rounds()  # it is still a run directory, to be read


def test_a_run_of_another_version_is_refused_for_its_version_before_anything_else_of_it_is_read(from_file: Path):
    edit_run_file(from_file, lambda data: data["fingerprint"]["versions"].update(discreet="0.0.9"))
    (from_file / "run" / "resolved.toml").write_text("what = 'this version knows no such field'")
    assert_refused(
        from_file,
        rf"was started by discreet 0\.0\.9, and this is discreet {read_code_version().release}",
        lambda: go_on(from_file),
    )


def test_another_version_says_so_from_python_too(stopped_run: Path, net: nn.Module):
    edit_run_file(stopped_run, lambda data: data["fingerprint"]["versions"].update(discreet="9.1", torch="1.0"))
    assert_refused(
        stopped_run, r"by discreet 9\.1, and this is", lambda: train(task(*arrays()), net, resume=stopped_run / "run")
    )


def test_another_version_of_what_draws_the_noise_is_refused(from_file: Path):
    """A repeated round would have other noise on the same data: two releases, and only one is counted."""
    edit_run_file(from_file, lambda data: data["fingerprint"]["versions"].update(numpy="1.0"))
    assert_refused(from_file, r"was started with numpy 1\.0, and here is numpy ", lambda: go_on(from_file))


def test_a_run_of_a_newer_version_is_refused_for_its_version(from_file: Path):
    edit_run_file(
        from_file,
        lambda data: (data.update(later="a field"), data["fingerprint"]["versions"].update(discreet="99.0")),
    )
    assert_refused(from_file, r"by discreet 99\.0, and this is discreet", lambda: go_on(from_file))


def test_public_data_counts_too(prepare: PrepareJob):
    job = prepare("seed=1", 'task={kind="digits", clients=3, public_examples=200}')
    assert job.public_data is not None
    targets = job.public_data.targets.clone()
    targets[0] = (targets[0] + 1) % 10
    other = replace(job, public_data=replace(job.public_data, targets=targets))
    before, after = (asdict(fingerprint.take_fingerprint(each)) for each in (job, other))
    assert {name for name in before if before[name] != after[name]} == {"public_data"}


def test_the_order_and_the_multiplicity_of_examples_count(prepare: PrepareJob):
    job = prepare("seed=1")
    held = job.data
    order = torch.arange(len(held.inputs))
    swapped = order.clone()
    swapped[[0, 1]] = order[[1, 0]]
    found = {
        fingerprint.take_fingerprint(replace(job, data=each)).training_data
        for each in (
            replace(held, order=order),
            replace(held, order=swapped),
            replace(held, order=order, max_multiplicity=2),
        )
    }
    assert len(found) == 3


def test_the_data_is_what_counts_and_not_where_it_lies(prepare: PrepareJob):
    job = prepare("seed=1")
    copied = Federation(
        job.data.inputs.clone(), job.data.targets.clone(), job.data.sizes, job.data.max_multiplicity, job.data.order
    )
    assert fingerprint.take_fingerprint(replace(job, data=copied)) == fingerprint.take_fingerprint(job)


def test_under_another_key_every_digest_of_the_same_run_is_another(prepare: PrepareJob):
    """So they reveal nothing to the holder of the run directory, which does not contain the key."""
    job = prepare("seed=1")
    one, two = (asdict(fingerprint.take_fingerprint(replace(job, key=RunKey(secret * 32)))) for secret in (b"1", b"2"))
    versions = one.pop("versions")
    assert two.pop("versions") == versions
    assert not set(one.values()) & set(two.values())
    assert all(len(each) == 64 for each in one.values())


def test_a_round_is_reserved_under_the_runs_fingerprint(stopped_run: Path):
    """So a release on other data never passes for a reserved one, whatever the run's name."""
    identity = RunRecord.open(stopped_run / "run").identity
    assert identity.fingerprint is not None
    lines = [json.loads(line) for line in (stopped_run / "data.jsonl").read_text().splitlines()]
    keys = [line["key"] for line in lines if line["type"] == "reserve"]
    assert keys == [f"run {identity.id} round 0 of {identity.fingerprint.digest}"]
    other = replace(identity.fingerprint, training_data="0" * 64)
    assert other.digest != identity.fingerprint.digest


def test_a_gpu_draws_other_noise_than_a_cpu(prepare: PrepareJob, monkeypatch: pytest.MonkeyPatch):
    job = prepare("seed=1")
    before = asdict(fingerprint.take_fingerprint(job))
    monkeypatch.setattr(Job, "device", torch.device("cuda"))
    after = asdict(fingerprint.take_fingerprint(job))
    assert {name for name in before if before[name] != after[name]} == {"device"}


@pytest.mark.parametrize("name", ["../other", "/tmp/victim", "", "0123456789ABCDEF"])
def test_a_run_directory_can_not_name_a_key_outside_the_folder_of_keys(name: str, tmp_path: Path):
    (tmp_path / "other.key").write_text("mine")
    for use in (run_keys.load_key, run_keys.delete_key):
        with pytest.raises(InvalidInput, match="16 hexadecimal digits"):
            use(name, tmp_path / "keys")
    assert (tmp_path / "other.key").exists()
