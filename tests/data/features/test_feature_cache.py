"""The cache computes once, and returns correct values whatever happens to its files."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

from discreet.data.features import feature_cache
from discreet.errors import DiscreetError

INPUTS = torch.arange(12.0).reshape(3, 4)
FEATURES = INPUTS * 2 + 1


class Computing:
    """Counts its calls."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Tensor:
        self.times += 1
        return FEATURES.clone()


@pytest.fixture
def computing() -> Computing:
    return Computing()


def load_or_compute(
    folder: Path, compute: Callable[[], Tensor], inputs: Tensor = INPUTS, depth: int = 2, fits: bool = True
) -> Tensor:
    return feature_cache.load_or_compute(
        folder, inputs, {"kind": "double", "depth": depth}, compute, lambda found: fits
    )


def only_file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_an_array_is_computed_once(tmp_path: Path, computing: Computing):
    for _ in range(3):
        assert torch.equal(load_or_compute(tmp_path / "new" / "folder", computing), FEATURES)
    assert computing.times == 1
    assert only_file(tmp_path / "new" / "folder").suffix == ".safetensors"


@pytest.mark.parametrize(
    ("inputs", "depth"),
    [
        (INPUTS + torch.eye(3, 4) * 1e-6, 2),
        (INPUTS.reshape(4, 3), 2),
        (INPUTS.double(), 2),
        (INPUTS.flip(0), 2),
        (INPUTS, 3),
    ],
    ids=["a number", "the shape", "the type", "the order", "a setting"],
)
def test_whatever_differs_is_computed_by_itself(inputs: Tensor, depth: int, tmp_path: Path, computing: Computing):
    load_or_compute(tmp_path, computing)
    load_or_compute(tmp_path, computing, inputs, depth)
    assert computing.times == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_where_the_numbers_lie_in_memory_does_not_matter(tmp_path: Path, computing: Computing):
    load_or_compute(tmp_path, computing)
    load_or_compute(tmp_path, computing, INPUTS.T.contiguous().T)
    assert computing.times == 1


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def write_garbage(path: Path) -> None:
    path.write_text("not an array")


@pytest.mark.parametrize("damage", [cut, flip, empty, write_garbage])
def test_a_damaged_file_is_computed_anew(damage: Callable[[Path], None], tmp_path: Path, computing: Computing):
    load_or_compute(tmp_path, computing)
    damage(only_file(tmp_path))
    assert torch.equal(load_or_compute(tmp_path, computing), FEATURES)
    assert computing.times == 2
    assert torch.equal(load_or_compute(tmp_path, computing), FEATURES)  # and repaired
    assert computing.times == 2


def test_what_no_longer_fits_is_computed_anew(tmp_path: Path, computing: Computing):
    load_or_compute(tmp_path, computing)
    load_or_compute(tmp_path, computing, fits=False)
    assert computing.times == 2


WRITER = """
import sys, time
from pathlib import Path
import safetensors.torch
import torch
from discreet.data.features import feature_cache

def slow(tensors, path, about):
    Path(path).write_bytes(b"half of it")
    print("writing", flush=True)
    time.sleep(60)

safetensors.torch.save_file = slow
inputs = torch.arange(12.0).reshape(3, 4)
feature_cache.load_or_compute(Path(sys.argv[1]), inputs, {"kind": "double", "depth": 2}, lambda: inputs * 2 + 1)
"""


def test_a_killed_writer_leaves_nothing_that_is_read_and_is_cleaned_up_after(tmp_path: Path, computing: Computing):
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"writing\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    draft = only_file(tmp_path)
    assert torch.equal(load_or_compute(tmp_path, computing), FEATURES)
    assert computing.times == 1
    assert only_file(tmp_path).suffix == ".safetensors"
    draft.write_bytes(b"half of it")
    load_or_compute(tmp_path, computing)  # a hit cleans up as well
    assert computing.times == 1
    assert not draft.exists()


@pytest.mark.parametrize(
    "writer",
    [f"{feature_cache._machine_id()}-{os.getpid()}", "0123abcd-999999999", "old"],
    ids=["ours", "elsewhere", "unknown"],
)
def test_the_draft_of_a_writer_that_may_be_at_work_stays_for_an_hour(writer: str, tmp_path: Path, computing: Computing):
    draft = tmp_path / f"name-{writer}-0123abcd.draft"
    draft.write_bytes(b"half of it")
    load_or_compute(tmp_path, computing)
    assert draft.exists()
    long_ago = time.time() - 2 * feature_cache.ABANDONED
    os.utime(draft, (long_ago, long_ago))
    load_or_compute(tmp_path, computing)
    assert not draft.exists()


def test_two_writers_at_once_are_harmless(tmp_path: Path):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: load_or_compute(tmp_path, FEATURES.clone), range(16)))
    assert all(torch.equal(each, FEATURES) for each in found)
    assert only_file(tmp_path).suffix == ".safetensors"


def test_what_is_read_may_be_changed_in_memory_and_the_file_stays(tmp_path: Path, computing: Computing):
    load_or_compute(tmp_path, computing)
    load_or_compute(tmp_path, computing).zero_()
    assert torch.equal(load_or_compute(tmp_path, computing), FEATURES)
    assert computing.times == 1


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_computed(tmp_path: Path, computing: Computing):
    (tmp_path / "taken").write_text("a file")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "within"):
        with pytest.raises(DiscreetError, match=r"taken is a file, not a folder. Set DISCREET_CACHE to a folder, or"):
            load_or_compute(folder, computing)
    assert computing.times == 0


def test_a_failed_write_is_told_and_leaves_nothing(
    tmp_path: Path, computing: Computing, monkeypatch: pytest.MonkeyPatch
):
    def full(tensors: object, path: Path, about: object) -> None:
        path.write_bytes(b"half of it")
        raise OSError("no space left")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(DiscreetError, match="no space left"):
        load_or_compute(tmp_path, computing)
    assert not list(tmp_path.iterdir())


def test_the_digest_covers_every_piece(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feature_cache, "PIECE", 16)
    whole = feature_cache.tensor_digest(INPUTS)
    for index in range(12):
        changed = INPUTS.flatten().clone()
        changed[index] += 1
        assert feature_cache.tensor_digest(changed.reshape(3, 4)) != whole
    assert feature_cache.tensor_digest(INPUTS.clone()) == whole
