"""Fashion-MNIST: real clothes, equally many of each kind."""

from pathlib import Path

import pytest
import torch

from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.fashion_mnist import FashionMnist
from discreet.data.tasks.task_loading import load_task
from discreet.part import from_plain, to_plain
from discreet.paths import Paths


def test_all_of_it_is_here_in_the_official_order(data_dir: Path):
    if not (data_dir / "fashion-mnist").is_dir():
        pytest.skip(f"fashion-mnist is not in {data_dir}")
    task = load_task(FashionMnist(limit=6000), torch.Generator().manual_seed(0), Paths.default(data=data_dir))
    assert (task.input_shape, task.classes, task.kind) == ((1, 28, 28), 10, "classification")
    assert task.train.targets[:10].tolist() == [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]
    assert task.train.sizes == (600,) * 10
    assert torch.bincount(task.test_targets).tolist() == [1000] * 10
    assert float(task.test_inputs.double().mean()) == pytest.approx(0.2868, abs=1e-3)
    assert "Fashion-MNIST is public data, treated as if it were private." in task.facts


def test_a_file_names_it_in_one_line():
    made = from_plain(AnyTask, {"kind": "fashion_mnist"})
    assert made == FashionMnist(clients=10)
    assert from_plain(AnyTask, to_plain(made)) == made
