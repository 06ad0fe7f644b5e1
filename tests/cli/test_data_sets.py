"""`discreet data get` and `discreet data list`: what is here, what came, and what to do without a network."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.datasets import catalog
from tests.cli.conftest import Discreet
from tests.datasets.published import publish, put, tar_of

HELD = {"data_batch_1.bin": b"1" * 1000, "test_batch.bin": b"2" * 500}


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """CIFAR-10 in small, published at a file:// address; the path of what is published."""
    archive = tar_of(HELD, "cifar-10-batches-bin")
    there = tmp_path / "cifar-10-binary.tar.gz"
    there.write_bytes(archive)
    data = publish(monkeypatch, "cifar10", HELD, archive=archive)
    here = replace(data, downloads=(replace(data.downloads[0], urls=(there.as_uri(),)),))
    monkeypatch.setattr(catalog, "DATA_SETS", {**catalog.DATA_SETS, "cifar10": here})
    return there


def test_it_is_downloaded_once_and_then_only_verified(published: Path, tmp_path: Path, discreet: Discreet):
    line = f"data get cifar10 --data-dir {tmp_path / 'data'}"
    first, again = discreet(line), discreet(line)
    assert (first.code, first.err, again.code, again.err) == (0, "", 0, "")
    text = " ".join(first.out.split())
    assert text.startswith("cifar10 was downloaded and verified. It lies in")
    assert "cifar-10-binary.tar.gz" in text
    assert text.endswith("Licence: none stated")
    assert "was here already, and is verified" in " ".join(again.out.split())


def test_json_says_what_came_and_where_it_lies(published: Path, tmp_path: Path, discreet: Discreet):
    line = f"data get cifar10 --json --data-dir {tmp_path / 'data'}"
    found = discreet(line).json
    path = tmp_path / "data" / "cifar10" / "cifar-10-binary.tar.gz"
    assert found == {
        "name": "cifar10",
        "folder": str(path.parent),
        "files": [{"path": str(path), "bytes": published.stat().st_size}],
        "downloaded": ["cifar-10-binary.tar.gz"],
        "verified": True,
        "licence": "none stated",
    }
    assert discreet(line).json == {**found, "downloaded": []}


def test_files_in_any_compression_need_no_download(published: Path, tmp_path: Path, discreet: Discreet):
    published.unlink()
    put(tmp_path / "data" / "cifar10", HELD, ".xz")
    found = discreet(f"data get cifar10 --json --data-dir {tmp_path / 'data'}").json
    assert [Path(file["path"]).name for file in found["files"]] == ["data_batch_1.bin.xz", "test_batch.bin.xz"]


def test_without_a_network_one_sentence_says_what_to_put_where(published: Path, tmp_path: Path, discreet: Discreet):
    published.unlink()
    ran = discreet(f"data get cifar10 --data-dir {tmp_path / 'data'}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert f"put cifar-10-binary.tar.gz from {published.as_uri()} into {tmp_path / 'data' / 'cifar10'}" in ran.err


def test_a_damaged_file_is_refused(published: Path, tmp_path: Path, discreet: Discreet):
    put(tmp_path / "data" / "cifar10", HELD)
    (tmp_path / "data" / "cifar10" / "test_batch.bin").write_bytes(b"3" * 500)
    ran = discreet(f"data get cifar10 --data-dir {tmp_path / 'data'}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "Delete it, then: discreet data get cifar10" in ran.err


@pytest.mark.parametrize("name", ["femnist", "acs_income", "lending-club"])
def test_what_cant_be_downloaded_says_what_to_put_where(name: str, tmp_path: Path, discreet: Discreet):
    ran = discreet(f"data get {name} --data-dir {tmp_path}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"{tmp_path / name.replace('_', '-')} holds no" in ran.err
    assert "Put there" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_lists_the_known_ones(discreet: Discreet):
    ran = discreet("data get mnits")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "mnist, fashion_mnist, cifar10" in ran.err


def test_a_person_who_waits_sees_a_bar_on_stderr(
    published: Path, tmp_path: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    ran = discreet(f"data get cifar10 --data-dir {tmp_path / 'data'}")
    assert "cifar-10-binary.tar.gz" in ran.err
    assert discreet(f"data get cifar10 --json --data-dir {tmp_path / 'other'}").err == ""


def test_the_list_says_what_is_here_without_reading_it(published: Path, tmp_path: Path, discreet: Discreet):
    put(tmp_path / "data" / "cifar10", {**HELD, "test_batch.bin": b"3" * 500})  # of the right size
    put(
        tmp_path / "data" / "acs-income",
        {"TX.csv": b"own", "TX.csv.sha256": hashlib.sha256(b"own").hexdigest().encode()},
    )
    ran = discreet(f"data list --json --data-dir {tmp_path / 'data'}")
    rows = {row["name"]: row for row in ran.json["data_sets"]}
    assert list(rows) == list(catalog.DATA_SETS)
    assert {name: row["here"] for name, row in rows.items() if row["here"] != "no"} == {
        "cifar10": "yes",
        "acs_income": "partly",
    }
    assert (rows["mnist"]["train"], rows["mnist"]["test"], rows["mnist"]["classes"]) == (60_000, 10_000, 10)
    assert rows["mnist"]["natural_clients"] == "539 writers"
    assert (rows["cifar10"]["bytes"], rows["cifar10"]["can_be_downloaded"]) == (published.stat().st_size, True)
    assert (rows["lending_club"]["classes"], rows["lending_club"]["can_be_downloaded"]) == (None, False)


def test_the_list_is_a_table_of_80_columns(tmp_path: Path, discreet: Discreet):
    put(tmp_path / "acs-income", {"TX.csv": b"own", "TX.csv.sha256": b"0"})
    out = discreet(f"data list --data-dir {tmp_path}").out
    lines = out.splitlines()
    assert lines[0].split() == ["data", "set", "examples", "classes", "size", "here", "clients", "licence"]
    assert [line.split()[0] for line in lines[1:9]] == list(catalog.DATA_SETS)
    assert "…" not in out
    assert max(map(len, lines[:9])) <= 80
    assert lines[1].split() == ["mnist", "70,000", "10", "12.1", "MB", "no", "539", "writers", "CC", "BY-SA", "3.0"]


def test_the_place_may_be_named_by_the_environment(tmp_path: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    assert discreet("data list --json").json["folder"] == str(tmp_path)
