"""Whether a data set is here: at a glance by size, and for certain by reading it."""

from pathlib import Path

import pytest

from discreet.data.datasets.dataset_catalog import DATA_SETS
from discreet.data.datasets.dataset_presence import Held, glance, verified
from discreet.errors import InvalidInput
from discreet.paths import Places
from tests.data.datasets.published import PACK, publish, put, tar_of

HELD = {"one": b"1" * 1000, "two": b"2" * 500}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places.of(data=tmp_path)


@pytest.mark.parametrize("ending", PACK)
def test_whole_files_are_here_and_one_cut_short_is_not(ending: str, places: Places, monkeypatch: pytest.MonkeyPatch):
    data = publish(monkeypatch, "mnist", HELD)
    assert glance(places, data) == "no"
    put(places.data / "mnist", HELD, ending)
    assert glance(places, data) == "yes"
    path = places.data / "mnist" / f"two{ending}"
    path.write_bytes(path.read_bytes()[:-1])
    assert glance(places, data) == "partly"


def test_an_archive_of_the_right_size_is_all_of_it(places: Places, monkeypatch: pytest.MonkeyPatch):
    archive = tar_of(HELD, "cifar-10-batches-bin")
    data = publish(monkeypatch, "cifar10", HELD, archive=archive)
    put(places.data / "cifar10", {"cifar-10-binary.tar.gz": archive})
    assert glance(places, data) == "yes"
    assert verified(places, data) == [Held(places.data / "cifar10" / "cifar-10-binary.tar.gz")]
    put(places.data / "cifar10", {"cifar-10-binary.tar.gz": archive[:-1]})
    assert glance(places, data) == "no"
    with pytest.raises(InvalidInput, match="its md5 is"):
        verified(places, data)


def test_verified_reads_every_file(places: Places, monkeypatch: pytest.MonkeyPatch):
    data = publish(monkeypatch, "mnist", HELD)
    put(places.data / "mnist", HELD, ".gz")
    assert [each.path.name for each in verified(places, data)] == ["one.gz", "two.gz"]
    put(places.data / "mnist", {"two": b"3" * 500}, ".gz")
    assert glance(places, data) == "yes"  # it looks whole
    with pytest.raises(InvalidInput, match="sha256"):
        verified(places, data)


def test_what_is_optional_may_be_missing(data_dir: Path, tmp_path: Path):
    if not (data_dir / "mnist").is_dir():
        pytest.skip(f"mnist is not in {data_dir}")
    (tmp_path / "mnist").mkdir()
    for path in (data_dir / "mnist").glob("[t]*"):
        (tmp_path / "mnist" / path.name).symlink_to(path)
    places = Places.of(data=tmp_path)
    assert glance(places, DATA_SETS["mnist"]) == "yes"
    assert len(verified(places, DATA_SETS["mnist"])) == 4
    (tmp_path / "mnist" / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InvalidInput, match="holds no train-labels-idx1-ubyte"):
        verified(places, DATA_SETS["mnist"])
