"""CIFAR-100 has two labels for each picture: its class and its superclass."""

from pathlib import Path

import numpy as np
import pytest
import torch

from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.cifar100 import Cifar100
from discreet.data.tasks.task_loading import load_task
from discreet.part import from_plain, to_plain
from discreet.paths import Paths
from tests.data.datasets.small_datasets import publish, put, tar_of

LABELS = np.array([[19, 99], [0, 3], [7, 50]], np.uint8)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """Three pictures for training and two for testing, in an archive of which only the checksum is known."""
    rows = np.concatenate([LABELS, np.arange(3 * 3072).astype(np.uint8).reshape(3, 3072)], axis=1)
    held = {"train.bin": rows.tobytes(), "test.bin": rows[1:].tobytes()}
    archive = tar_of(held, "cifar-100-binary")
    publish(monkeypatch, "cifar100", held, archive=archive, checksums=False)
    put(tmp_path / "cifar100", {"cifar-100-binary.tar.gz": archive})
    return Paths.default(data=tmp_path)


@pytest.mark.parametrize(("labels", "column", "classes"), [("fine", 1, 100), ("coarse", 0, 20)])
def test_either_label_can_be_learned(labels: str, column: int, classes: int, paths: Paths):
    task = from_plain(AnyTask, {"kind": "cifar100", "labels": labels, "clients": 3})
    loaded = load_task(task, torch.Generator().manual_seed(0), paths)
    assert (loaded.classes, loaded.input_shape) == (classes, (3, 32, 32))
    assert loaded.train.targets.tolist() == LABELS[:, column].tolist()
    assert loaded.test_targets.tolist() == LABELS[1:, column].tolist()
    assert float(loaded.train.inputs[0, 0, 0, 5]) == pytest.approx(5 / 255)
    assert "CIFAR-100 is public data, treated as if it were private." in loaded.facts


def test_a_file_names_it_in_one_line():
    made = from_plain(AnyTask, {"kind": "cifar100", "scaling": "imagenet"})
    assert made == Cifar100(scaling="imagenet")
    assert from_plain(AnyTask, to_plain(made)) == made
