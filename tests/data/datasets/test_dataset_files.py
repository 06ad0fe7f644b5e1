"""A file is found in any compression, and a wrong file is refused with a sentence."""

import hashlib
from pathlib import Path

import pytest

from discreet.data.datasets.dataset_catalog import DATA_SETS
from discreet.data.datasets.dataset_files import read_data_file, read_data_files
from discreet.data.datasets.owner_checksums import FileContent
from discreet.errors import InvalidInput
from discreet.paths import Paths
from tests.data.datasets.small_datasets import PACK, publish, put, tar_of, zip_of

HELD = {"one": b"1" * 1000, "two": b"2" * 500}


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.default(data=tmp_path)


@pytest.mark.parametrize("ending", PACK)
def test_compression_does_not_matter(ending: str, paths: Paths, monkeypatch: pytest.MonkeyPatch):
    publish(monkeypatch, "fashion_mnist", HELD)
    put(paths.data / "fashion-mnist", HELD, ending)
    assert read_data_file(paths, "fashion_mnist", "two") == FileContent("two", HELD["two"])
    assert [each.data for each in read_data_files(paths, "fashion_mnist", ["two", "one"])] == [HELD["two"], HELD["one"]]


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize(("name", "pack"), [("cifar10", tar_of), ("cifar100", tar_of), ("emnist", zip_of)])
def test_an_archive_may_lie_there_as_it_was_published(
    name: str, pack: object, checksums: bool, paths: Paths, monkeypatch: pytest.MonkeyPatch
):
    only = DATA_SETS[name].downloads[0]
    archive = (tar_of if pack is tar_of else zip_of)(HELD, only.inside or "")
    publish(monkeypatch, name, HELD, archive=archive, checksums=checksums)
    put(paths.data / name, {only.name: archive})
    assert read_data_files(paths, name, ["two", "one"]) == [
        FileContent("two", HELD["two"]),
        FileContent("one", HELD["one"]),
    ]


def test_an_archive_may_have_been_unpacked(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    publish(monkeypatch, "emnist", HELD, checksums=False)
    put(paths.data / "emnist" / "gzip", HELD, ".gz")
    assert read_data_file(paths, "emnist", "one").data == HELD["one"]


def test_what_is_missing_is_named_with_how_to_get_it(paths: Paths):
    with pytest.raises(InvalidInput) as refused:
        read_data_file(paths, "mnist", "train-images-idx3-ubyte")
    assert str(refused.value) == (
        f"mnist is missing: {paths.data}/mnist has no train-images-idx3-ubyte, plain, .gz or .xz. "
        "Get it with: discreet data get mnist; --data-dir or DISCREET_DATA names another folder."
    )


@pytest.mark.parametrize(
    ("name", "file"),
    [("femnist", "femnist_540_writers.npz"), ("acs_income", "TX.csv"), ("lending_club", "loans_2007_2011.csv")],
)
def test_what_nobody_publishes_is_described_instead(name: str, file: str, paths: Paths):
    with pytest.raises(
        InvalidInput,
        match=f"has no {file}.* Put there .* with .*; --data-dir or DISCREET_DATA names .*"
        f"the sha256 of its uncompressed content into {file}.sha256 in the same folder, or into a SHA256SUMS",
    ):
        read_data_file(paths, name, file)


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        ("", lambda whole: whole[:-1]),
        (".gz", lambda whole: whole[:-9]),
        (".gz", lambda whole: whole[:-1]),
        (".gz", lambda whole: b"not gzip"),
        (".gz", lambda whole: whole[:12] + bytes(8) + whole[20:]),
        (".xz", lambda whole: whole[:-1]),
        (".xz", lambda whole: b"not xz"),
    ],
)
@pytest.mark.parametrize("checksums", [True, False])
def test_a_file_cut_short_or_damaged_is_refused(
    ending: str, damage: object, checksums: bool, paths: Paths, monkeypatch: pytest.MonkeyPatch
):
    assert callable(damage)
    publish(monkeypatch, "mnist", HELD, checksums=checksums)
    put(paths.data / "mnist", HELD, ending)
    path = paths.data / "mnist" / f"one{ending}"
    path.write_bytes(damage(path.read_bytes()))
    sentence = f"{path} is not the file that mnist needs: it is cut short.*Delete it, then: discreet data get mnist"
    with pytest.raises(InvalidInput, match=sentence):
        read_data_file(paths, "mnist", "one")


def test_a_file_of_another_content_is_refused_with_both_checksums(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    publish(monkeypatch, "mnist", HELD)
    put(paths.data / "mnist", {"one": b"3" * 1000}, ".gz")
    both = [hashlib.sha256(each).hexdigest() for each in (b"3" * 1000, HELD["one"])]
    with pytest.raises(InvalidInput, match=f"sha256 of its content is {both[0]}, and should be {both[1]}"):
        read_data_file(paths, "mnist", "one")


def test_a_file_that_is_too_long_is_not_read_to_its_end(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    for checksums in (True, False):
        publish(monkeypatch, "mnist", HELD, checksums=checksums)
        put(paths.data / "mnist", {"one": HELD["one"] + bytes(10**6)}, ".gz")
        with pytest.raises(InvalidInput, match=r"longer than 1,000 bytes|sha256 of its content"):
            read_data_file(paths, "mnist", "one")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda whole: whole[: len(whole) // 2], "its md5 is"),
        (lambda whole: whole + b"more", "its md5 is"),
    ],
)
def test_an_archive_that_is_not_the_published_one_is_refused(
    damage: object, sentence: str, paths: Paths, monkeypatch: pytest.MonkeyPatch
):
    assert callable(damage)
    archive = tar_of(HELD, "cifar-100-binary")
    publish(monkeypatch, "cifar100", HELD, archive=archive, checksums=False)
    put(paths.data / "cifar100", {"cifar-100-binary.tar.gz": damage(archive)})
    with pytest.raises(InvalidInput, match=f"cifar-100-binary.tar.gz is not the file that cifar100 needs: {sentence}"):
        read_data_file(paths, "cifar100", "one")


@pytest.mark.parametrize(
    ("held", "sentence"),
    [
        ({"two": HELD["two"]}, "it does not contain one"),
        ({"one": b"1", "two": b""}, "it is cut short, at 1 of 1,000 bytes"),
    ],
)
def test_an_archive_without_the_file_is_refused(
    held: dict[str, bytes], sentence: str, paths: Paths, monkeypatch: pytest.MonkeyPatch
):
    publish(monkeypatch, "cifar10", HELD)
    put(paths.data / "cifar10", {"cifar-10-binary.tar.gz": tar_of(held, "cifar-10-batches-bin")})
    with pytest.raises(InvalidInput, match=sentence):
        read_data_file(paths, "cifar10", "one")


def test_half_an_archive_is_refused(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    publish(monkeypatch, "cifar10", HELD)
    half = tar_of(HELD, "cifar-10-batches-bin")[:60]
    put(paths.data / "cifar10", {"cifar-10-binary.tar.gz": half})
    with pytest.raises(InvalidInput, match="cut short or damaged"):
        read_data_file(paths, "cifar10", "two")


def test_a_published_file_cant_be_vouched_for(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    publish(monkeypatch, "mnist", HELD)
    put(paths.data / "mnist", {"one": b"3", "one.sha256": hashlib.sha256(b"3").hexdigest().encode()})
    with pytest.raises(InvalidInput, match="cut short"):
        read_data_file(paths, "mnist", "one")


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "femnist", "acs_income", "lending_club"])
def test_the_real_files_have_their_checksums(name: str, data_dir: Path):
    data = DATA_SETS[name]
    if not (data_dir / data.folder).is_dir():
        pytest.skip(f"{name} is not in {data_dir}")
    read = read_data_files(Paths.default(data=data_dir), name, list(data.files))
    assert [len(each.data) for each in read] == [file.size for file in data.files.values()]
    assert not any(each.owner_sha256 for each in read)
