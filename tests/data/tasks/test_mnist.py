"""MNIST: real digits in their original order, by writers who can be the clients."""

from pathlib import Path

import numpy as np
import pytest
import torch

from discreet.data.dirichlet_partition import Dirichlet
from discreet.data.partition import ByGroup
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.mnist import Mnist
from discreet.data.tasks.task_loading import load_task
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.paths import Paths
from tests.data.datasets.small_datasets import idx_of, publish, put


@pytest.fixture(scope="module")
def mnist(data_dir: Path) -> Examples:
    if not (data_dir / "mnist").is_dir():
        pytest.skip(f"mnist is not in {data_dir}")
    return Mnist(writers=True).examples(Paths.default(data=data_dir))


def test_all_of_it_is_here_in_the_official_order(mnist: Examples):
    assert (mnist.kind, mnist.classes) == ("classification", 10)
    assert (mnist.inputs.shape, mnist.inputs.dtype) == ((60_000, 1, 28, 28), torch.float32)
    assert mnist.test_inputs.shape == (10_000, 1, 28, 28)
    assert mnist.targets[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert mnist.test_targets[:5].tolist() == [7, 2, 1, 0, 4]
    assert torch.bincount(mnist.targets).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def test_pixels_lie_between_0_and_1_and_the_card_says_why(mnist: Examples):
    assert (float(mnist.inputs.min()), float(mnist.inputs.max())) == (0, 1)
    assert float(mnist.inputs.double().mean()) == pytest.approx(0.1307, abs=1e-4)  # as is usual
    assert "treated as if it were private" in mnist.facts[0]
    assert "divided by 255" in mnist.facts[1]
    assert "nothing was fitted" in mnist.facts[1]


def test_539_writers_are_clients(mnist: Examples):
    task = mnist.build_task(None, ByGroup(), torch.Generator().manual_seed(0))
    assert len(task.train.sizes) == 539
    assert (min(task.train.sizes), max(task.train.sizes), sum(task.train.sizes)) == (19, 131, 60_000)
    assert any("Writers" in fact for fact in task.facts)


def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, writers: bool = True) -> Paths:
    held = {
        "train-images-idx3-ubyte": idx_of(np.arange(6 * 784, dtype=np.uint8).reshape(6, 28, 28)),
        "train-labels-idx1-ubyte": idx_of(np.array([3, 1, 4, 1, 5, 9], np.uint8)),
        "t10k-images-idx3-ubyte": idx_of(np.full((2, 28, 28), 255, np.uint8)),
        "t10k-labels-idx1-ubyte": idx_of(np.array([2, 6], np.uint8)),
        "qmnist-train-labels-idx2-int": idx_of(np.array([[0, 4, each] for each in (30, 7, 30, 7, 8, 8)], np.int32)),
    }
    publish(monkeypatch, "mnist", held)
    put(tmp_path / "mnist", held if writers else dict(list(held.items())[:4]))
    return Paths.default(data=tmp_path)


def test_a_limit_takes_the_first_and_leaves_the_test_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = small(tmp_path, monkeypatch, writers=False)
    task = load_task(Mnist(limit=4, clients=2), torch.Generator().manual_seed(0), paths)
    assert task.train.targets.tolist() == [3, 1, 4, 1]
    assert task.train.inputs[1, 0, 0, :2].tolist() == pytest.approx([(784 + at) % 256 / 255 for at in (0, 1)])
    assert (task.train.sizes, len(task.test_inputs)) == ((2, 2), 2)
    assert "Only the first 4 training examples are used." in task.facts


def test_writers_are_loaded_only_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = small(tmp_path, monkeypatch)
    assert Mnist().examples(paths).groups is None
    task = load_task(Mnist(writers=True, clients=None, partition=ByGroup()), torch.Generator(), paths)
    assert (task.client_names, task.train.sizes) == (("writer 7", "writer 8", "writer 30"), (2, 2, 2))
    assert task.train.examples_at(torch.arange(6))[1].tolist() == [1, 1, 5, 9, 3, 4]


def test_writers_that_are_not_here_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = small(tmp_path, monkeypatch, writers=False)
    with pytest.raises(InvalidInput, match="has no qmnist-train-labels-idx2-int"):
        Mnist(writers=True).examples(paths)


def test_groups_that_are_not_loaded_are_refused_at_once():
    with pytest.raises(InvalidInput, match="Set writers = true"):
        Mnist(partition=ByGroup())


def test_a_file_names_it_in_one_line():
    made = from_plain(
        AnyTask, {"kind": "mnist", "clients": 3, "partition": {"kind": "dirichlet", "alpha": 1}, "limit": 100}
    )
    assert made == Mnist(clients=3, partition=Dirichlet(alpha=1), limit=100)
    assert from_plain(AnyTask, to_plain(made)) == made
