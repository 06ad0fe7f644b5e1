"""FEMNIST: every client is a writer."""

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from discreet.data.partition import Iid
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.femnist import Femnist
from discreet.data.tasks.task import Task
from discreet.data.tasks.task_loading import load_task
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.paths import Paths

ARRAYS: dict[str, Any] = {
    "images": np.full((6, 28, 28), 255, np.uint8),
    "labels": np.array([61, 0, 9, 10, 35, 36], np.uint8),
    "writer": np.array([2, 0, 2, 0, 1, 2], np.uint16),
    "split": np.array([0, 0, 0, 1, 1, 1], np.uint8),
    "writer_ids": np.array(["ann", "bob", "cleo"]),
    "writer_complete": np.array([True, False, True]),
}
ARRAYS["images"][0, 5, 6] = 0  # ink


def write_own_file(tmp_path: Path, **changed: Any) -> Paths:
    """Write a user's own file, with its checksum next to it."""
    out = io.BytesIO()
    np.savez_compressed(out, **{**ARRAYS, **changed})
    (tmp_path / "femnist").mkdir(exist_ok=True)
    path = tmp_path / "femnist" / "femnist_540_writers.npz"
    path.write_bytes(out.getvalue())
    path.with_name(f"{path.name}.sha256").write_text(hashlib.sha256(out.getvalue()).hexdigest())
    return Paths.default(data=tmp_path)


def load(task: Femnist, paths: Paths) -> Task:
    return load_task(task, torch.Generator().manual_seed(0), paths)


def test_whole_writers_are_clients_and_leafs_split_is_kept(tmp_path: Path):
    task = load(Femnist(), write_own_file(tmp_path))
    assert (task.client_names, task.train.sizes, task.classes) == (("ann", "cleo"), (1, 2), 62)
    assert task.train.targets.tolist() == [61, 0, 9]
    assert task.train.examples_at(torch.arange(3))[1].tolist() == [0, 61, 9]
    assert task.test_targets.tolist() == [10, 36]
    assert any("Writers" in fact and "public" in fact for fact in task.facts)


def test_a_file_of_ones_own_is_not_called_public_and_its_checksum_is_not_covered(tmp_path: Path):
    task = load(Femnist(), write_own_file(tmp_path))
    assert task.facts[0].startswith("femnist_540_writers.npz is from the data's owner, who vouches")
    assert not any("is public data" in fact for fact in task.facts)
    sha256 = hashlib.sha256((tmp_path / "femnist" / "femnist_540_writers.npz").read_bytes()).hexdigest()
    assert sha256 in task.not_covered[0]


def test_ink_is_bright(tmp_path: Path):
    task = load(Femnist(), write_own_file(tmp_path))
    assert task.train.inputs[0].nonzero().tolist() == [[0, 5, 6]]
    assert float(task.train.inputs.max()) == 1


def test_writers_with_a_test_part_only_can_be_tested_on(tmp_path: Path):
    task = load(Femnist(complete_only=False), write_own_file(tmp_path))
    assert (task.client_names, task.test_targets.tolist()) == (("ann", "cleo"), [10, 35, 36])


def test_incomplete_writers_can_be_public_and_are_nobodys(tmp_path: Path):
    task = load(Femnist(public_writers=True), write_own_file(tmp_path))
    assert task.public is not None
    assert (task.public.sizes, task.public.targets.tolist()) == ((1,), [35])
    assert (task.client_names, task.test_targets.tolist()) == (("ann", "cleo"), [10, 36])
    assert "are public: none of them is a client" in task.facts[-1]
    assert load(Femnist(), write_own_file(tmp_path)).public is None


def test_who_cannot_be_public_is_told(tmp_path: Path):
    with pytest.raises(InvalidInput, match="public and tested on at once"):
        Femnist(public_writers=True, complete_only=False)
    with pytest.raises(InvalidInput, match="no incomplete writer"):
        load(Femnist(public_writers=True), write_own_file(tmp_path, writer_complete=np.ones(3, bool)))


def test_writers_can_be_mixed_up(tmp_path: Path):
    assert load(Femnist(clients=3, partition=Iid()), write_own_file(tmp_path)).train.sizes == (1, 1, 1)


@pytest.mark.parametrize(
    "changed",
    [
        {"images": ARRAYS["images"][:5]},
        {"images": ARRAYS["images"].astype(np.float32)},
        {"labels": ARRAYS["labels"].astype(np.float32)},
        {"labels": np.zeros(0, np.uint8)},
        {"writer": np.full(6, 3, np.uint16)},
        {"split": ARRAYS["split"][:, None]},
        {"writer_complete": np.array([True])},
        {"writer_complete": np.ones(3)},
    ],
)
def test_arrays_that_do_not_fit_each_other_are_refused(changed: dict[str, Any], tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"do not fit each other: images is .* images must be uint8"):
        load(Femnist(), write_own_file(tmp_path, **changed))


def test_300_whole_writers(data_dir: Path):
    if not (data_dir / "femnist").is_dir():
        pytest.skip(f"femnist is not in {data_dir}")
    task = load(Femnist(public_writers=True), Paths.default(data=data_dir))
    assert task.public is not None
    assert task.public.sizes == (7_348,)
    assert (len(task.train.sizes), sum(task.train.sizes), len(task.test_inputs)) == (300, 43_552, 5_050)
    assert task.input_shape == (1, 28, 28)
    assert (task.facts[0], task.not_covered) == ("FEMNIST is public data, treated as if it were private.", ())
    assert torch.bincount(task.train.targets, minlength=62).min() > 0
    assert 0.03 < float(task.train.inputs.mean()) < 0.05  # thin bright lines on dark paper


def test_a_file_names_it_in_one_line():
    made = from_plain(AnyTask, {"kind": "femnist"})
    assert (made.clients, made.partition.kind) == (None, "by_group")
    assert from_plain(AnyTask, to_plain(made)) == made
