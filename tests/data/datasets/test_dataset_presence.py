"""Whether a data set is present: quickly by its size, and reliably by reading it."""

from pathlib import Path

import pytest

from discreet.data.datasets.dataset_catalog import DATA_SETS
from discreet.data.datasets.dataset_presence import LocalFile, check_presence, verify_files
from discreet.errors import InvalidInput
from discreet.paths import Paths
from tests.data.datasets.small_datasets import PACK, publish, put, tar_of

HELD = {"one": b"1" * 1000, "two": b"2" * 500}


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.default(data=tmp_path)


@pytest.mark.parametrize("ending", PACK)
def test_whole_files_are_here_and_one_cut_short_is_not(ending: str, paths: Paths, monkeypatch: pytest.MonkeyPatch):
    data = publish(monkeypatch, "mnist", HELD)
    assert check_presence(paths, data) == "no"
    put(paths.data / "mnist", HELD, ending)
    assert check_presence(paths, data) == "yes"
    path = paths.data / "mnist" / f"two{ending}"
    path.write_bytes(path.read_bytes()[:-1])
    assert check_presence(paths, data) == "partly"


def test_an_archive_of_the_right_size_is_all_of_it(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    archive = tar_of(HELD, "cifar-10-batches-bin")
    data = publish(monkeypatch, "cifar10", HELD, archive=archive)
    put(paths.data / "cifar10", {"cifar-10-binary.tar.gz": archive})
    assert check_presence(paths, data) == "yes"
    assert verify_files(paths, data) == [LocalFile(paths.data / "cifar10" / "cifar-10-binary.tar.gz")]
    put(paths.data / "cifar10", {"cifar-10-binary.tar.gz": archive[:-1]})
    assert check_presence(paths, data) == "no"
    with pytest.raises(InvalidInput, match="its md5 is"):
        verify_files(paths, data)


def test_verified_reads_every_file(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    data = publish(monkeypatch, "mnist", HELD)
    put(paths.data / "mnist", HELD, ".gz")
    assert [each.path.name for each in verify_files(paths, data)] == ["one.gz", "two.gz"]
    put(paths.data / "mnist", {"two": b"3" * 500}, ".gz")
    assert check_presence(paths, data) == "yes"  # it looks whole
    with pytest.raises(InvalidInput, match="sha256"):
        verify_files(paths, data)


def test_what_is_optional_may_be_missing(data_dir: Path, tmp_path: Path):
    if not (data_dir / "mnist").is_dir():
        pytest.skip(f"mnist is not in {data_dir}")
    (tmp_path / "mnist").mkdir()
    for path in (data_dir / "mnist").glob("[t]*"):
        (tmp_path / "mnist" / path.name).symlink_to(path)
    paths = Paths.default(data=tmp_path)
    assert check_presence(paths, DATA_SETS["mnist"]) == "yes"
    assert len(verify_files(paths, DATA_SETS["mnist"])) == 4
    (tmp_path / "mnist" / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InvalidInput, match="has no train-labels-idx1-ubyte"):
        verify_files(paths, DATA_SETS["mnist"])
