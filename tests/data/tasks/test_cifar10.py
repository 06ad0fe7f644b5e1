"""CIFAR-10: real photographs in three channels, scaled by public constants."""

from pathlib import Path

import numpy as np
import pytest
import torch

from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.cifar10 import Cifar10
from discreet.data.tasks.examples import Examples
from discreet.part import from_plain, to_plain
from discreet.paths import Paths
from tests.data.datasets.small_datasets import publish, put, tar_of

BATCH = 10_000
ROWS = np.random.default_rng(0).integers(0, 10, (6, 2, 3073), np.uint8)
NAMES = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"]
HELD = {f"{name}.bin": rows.tobytes() for name, rows in zip(NAMES, ROWS, strict=True)}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """An archive of six files with two pictures each."""
    archive = tar_of(HELD, "cifar-10-batches-bin")
    publish(monkeypatch, "cifar10", HELD, archive=archive)
    put(tmp_path / "cifar10", {"cifar-10-binary.tar.gz": archive})
    return Paths.default(data=tmp_path)


def test_the_batches_follow_each_other(small: Paths):
    found = Cifar10().examples(small)
    assert (found.inputs.shape, found.test_inputs.shape) == ((10, 3, 32, 32), (2, 3, 32, 32))
    assert found.targets.tolist() == ROWS[:5, :, 0].flatten().tolist()
    assert found.test_targets.tolist() == ROWS[5, :, 0].tolist()
    assert float(found.inputs[3, 2, 31, 31]) == pytest.approx(ROWS[1, 1, -1] / 255)


def test_imagenets_constants_are_subtracted_and_divided_by(small: Paths):
    unit, scaled = Cifar10().examples(small), Cifar10(scaling="imagenet").examples(small)
    assert torch.allclose(scaled.inputs[:, 1], (unit.inputs[:, 1] - 0.456) / 0.224)
    assert torch.allclose(scaled.test_inputs[:, 2], (unit.test_inputs[:, 2] - 0.406) / 0.225)
    assert "ImageNet's published means" in scaled.facts[1]
    assert "nothing was fitted" in scaled.facts[1]


def test_a_limit_opens_no_more_batches_than_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    publish(monkeypatch, "cifar10", HELD)
    put(tmp_path / "cifar10", {name: HELD[name] for name in ("data_batch_1.bin", "test_batch.bin")})
    found = Cifar10(limit=1).examples(Paths.default(data=tmp_path))
    assert (len(found.inputs), len(found.test_inputs)) == (1, 2)


@pytest.fixture(scope="module")
def first(data_dir: Path) -> Examples:
    if not (data_dir / "cifar10").is_dir():
        pytest.skip(f"cifar10 is not in {data_dir}")
    return Cifar10(limit=BATCH).examples(Paths.default(data=data_dir))


def test_the_first_batch_is_in_the_official_order(first: Examples):
    assert (first.inputs.shape, first.inputs.dtype) == ((BATCH, 3, 32, 32), torch.float32)
    assert first.targets[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert first.test_targets[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    assert torch.bincount(first.targets).tolist() == [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981]
    assert torch.bincount(first.test_targets).tolist() == [1000] * 10
    assert (first.inputs[0, :, 0, 0] * 255).round().tolist() == [59, 62, 63]
    assert (float(first.inputs.min()), float(first.inputs.max())) == (0, 1)


def test_a_file_names_it_in_one_line():
    made = from_plain(AnyTask, {"kind": "cifar10", "scaling": "imagenet", "limit": 5000})
    assert made == Cifar10(scaling="imagenet", limit=5000)
    assert from_plain(AnyTask, to_plain(made)) == made
