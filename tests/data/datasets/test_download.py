"""A download is complete and correct, or leaves nothing; it tries every mirror; offline it says what to put where."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from discreet.data.datasets import download
from discreet.data.datasets.dataset_catalog import DATA_SETS, DataSet, Download
from discreet.data.datasets.dataset_files import read_data_file
from discreet.errors import DiscreetError, InvalidInput
from discreet.paths import Paths
from tests.data.datasets.small_datasets import publish, tar_of

BODY = bytes(range(256)) * 3000  # three chunks
GONE = "http://127.0.0.1:9/gone"  # the port of `discard`: nobody listens


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = {"/whole": BODY, "/half": BODY[:1000], "/wrong": BODY[::-1], "/longer": BODY + b"more"}.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(BODY) if self.path == "/half" else len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def source(*urls: str) -> Download:
    return Download("body.gz", urls, f"md5:{hashlib.md5(BODY).hexdigest()}", len(BODY))


MNIST = DATA_SETS["mnist"]


def test_what_came_lies_under_its_name_and_the_progress_was_told(server: str, tmp_path: Path):
    told: list[int] = []
    path = download.download_file(source(f"{server}/whole"), MNIST, tmp_path / "new" / "mnist", told.append)
    assert path.read_bytes() == BODY
    assert path.stat().st_mode & 0o777 == 0o644
    assert told == sorted(told)
    assert (len(told) >= 3, told[-1]) == (True, len(BODY))
    assert [each.name for each in path.parent.iterdir()] == ["body.gz"]


def test_the_second_mirror_is_tried_when_the_first_is_wrong(server: str, tmp_path: Path):
    for first in ("half", "wrong", "longer", "none"):
        path = download.download_file(source(f"{server}/{first}", f"{server}/whole"), MNIST, tmp_path)
        assert path.read_bytes() == BODY
        path.unlink()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("{}/half", "of 768,000 bytes|IncompleteRead"),
        ("{}/wrong", "what came has md5 .*, not"),
        ("{}/longer", "more than 768,000 bytes"),
        ("{}/none", "Not Found"),
        (GONE, "refused"),
        ("file:///nowhere/body.gz", "No such file|not on local host"),
    ],
)
def test_without_it_nothing_is_left_and_one_sentence_says_what_to_put_where(
    url: str, why: str, server: str, tmp_path: Path
):
    folder, url = tmp_path / "mnist", url.format(server)
    with pytest.raises(DiscreetError, match=why) as failed:
        download.download_file(source(url), MNIST, folder)
    assert failed.value.exit_code == 1
    assert failed.value.fix.startswith(f"Without a network, put body.gz from {url} into {folder};")
    assert "\n" not in str(failed.value)
    assert not folder.exists()


def test_an_interruption_leaves_nothing_and_what_was_there_stays(server: str, tmp_path: Path):
    (tmp_path / "other").write_text("mine")

    def interrupt(got: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download.download_file(source(f"{server}/whole"), MNIST, tmp_path, interrupt)
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


def test_a_place_that_cant_be_written_is_one_sentence(server: str, tmp_path: Path):
    (tmp_path / "mnist").write_text("a file, not a folder")
    with pytest.raises(InvalidInput, match=r"mnist can't be written to .*--data-dir"):
        download.download_file(source(f"{server}/whole"), MNIST, tmp_path / "mnist")


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """A small CIFAR-10, published at a file:// address."""
    held = {"one": b"1" * 1000}
    archive = tar_of(held, "cifar-10-batches-bin")
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(archive)
    data = publish(monkeypatch, "cifar10", held, archive=archive)
    there = (tmp_path / "cifar-10-binary.tar.gz").as_uri()
    return replace(data, downloads=(replace(data.downloads[0], urls=(there,)),))


def test_an_archive_is_kept_as_it_came_and_not_fetched_twice(cifar: DataSet, tmp_path: Path):
    paths, told = Paths.default(data=tmp_path / "data"), []

    def watch(source: Download, got: int) -> None:
        told.append((source.name, got))

    assert download.download_missing(paths, cifar, watch) == [tmp_path / "data" / "cifar10" / "cifar-10-binary.tar.gz"]
    assert told == [("cifar-10-binary.tar.gz", cifar.size)]
    assert read_data_file(paths, "cifar10", "one").data == b"1" * 1000
    assert download.download_missing(paths, cifar, watch) == []


def test_loose_files_need_no_archive(cifar: DataSet, tmp_path: Path):
    paths = Paths.default(data=tmp_path / "data")
    (paths.data / "cifar10").mkdir(parents=True)
    (paths.data / "cifar10" / "one").write_bytes(b"1" * 1000)
    assert download.download_missing(paths, cifar, lambda source, got: None) == []
