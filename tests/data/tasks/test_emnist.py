"""EMNIST's files hold transposed images and number letters from 1: both are corrected."""

from pathlib import Path

import numpy as np
import pytest
import torch

from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.emnist import Emnist
from discreet.data.tasks.task_loading import load_task
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.paths import Paths
from tests.data.datasets.small_datasets import idx_of, publish, put, zip_of


def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: str, labels: list[int]) -> Paths:
    """Pictures with one bright pixel in column 3 of row 7, as the files store them: in row 3 of column 7."""
    pictures = np.zeros((len(labels), 28, 28), np.uint8)
    pictures[:, 3, 7] = 255
    held = {}
    for use in ("train", "test"):
        held[f"emnist-{split}-{use}-images-idx3-ubyte"] = idx_of(pictures)
        held[f"emnist-{split}-{use}-labels-idx1-ubyte"] = idx_of(np.array(labels, np.uint8))
    archive = zip_of(held, "gzip")
    publish(monkeypatch, "emnist", held, archive=archive, checksums=False)
    put(tmp_path / "emnist", {"gzip.zip": archive})
    return Paths.default(data=tmp_path)


def test_letters_are_upright_and_numbered_from_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = small(tmp_path, monkeypatch, "letters", [1, 26, 13])
    task = load_task(Emnist(clients=3), torch.Generator().manual_seed(0), paths)
    assert (task.name, task.classes, task.input_shape) == ("emnist_letters", 26, (1, 28, 28))
    assert task.train.targets.tolist() == task.test_targets.tolist() == [0, 25, 12]
    assert task.train.inputs[0].nonzero().tolist() == [[0, 7, 3]]
    assert task.train.inputs.is_contiguous()
    assert "EMNIST is public data, treated as if it were private." in task.facts


@pytest.mark.parametrize(("split", "classes"), [("byclass", 62), ("bymerge", 47), ("balanced", 47), ("digits", 10)])
def test_the_other_splits_are_numbered_from_0_already(
    split: str, classes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    paths = small(tmp_path, monkeypatch, split, [0, classes - 1])
    found = from_plain(AnyTask, {"kind": "emnist", "split": split}).examples(paths)
    assert (found.targets.tolist(), found.classes) == ([0, classes - 1], classes)


def test_a_label_past_the_last_class_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = small(tmp_path, monkeypatch, "letters", [1, 0])
    with pytest.raises(InvalidInput, match="Labels must be between 0 and 25"):
        load_task(Emnist(clients=2), torch.Generator(), paths)


def test_a_file_names_it_in_one_line():
    made = from_plain(AnyTask, {"kind": "emnist", "split": "byclass"})
    assert made == Emnist(split="byclass")
    assert from_plain(AnyTask, to_plain(made)) == made
    with pytest.raises(InvalidInput, match="split"):
        from_plain(AnyTask, {"kind": "emnist", "split": "byletter"})
