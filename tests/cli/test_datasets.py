"""`discreet data get` and `discreet data list`: what is here, what was downloaded, what to do without a network."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.data.datasets import dataset_catalog
from tests.cli.conftest import Discreet
from tests.data.datasets.small_datasets import publish, put, tar_of

HELD = {"data_batch_1.bin": b"1" * 1000, "test_batch.bin": b"2" * 500}


@pytest.fixture
def published_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a small CIFAR-10 archive that is published at a file:// address."""
    archive = tar_of(HELD, "cifar-10-batches-bin")
    there = tmp_path / "cifar-10-binary.tar.gz"
    there.write_bytes(archive)
    data = publish(monkeypatch, "cifar10", HELD, archive=archive)
    here = replace(data, downloads=(replace(data.downloads[0], urls=(there.as_uri(),)),))
    monkeypatch.setattr(dataset_catalog, "DATA_SETS", {**dataset_catalog.DATA_SETS, "cifar10": here})
    return there


def test_it_is_downloaded_once_and_then_only_verified(published_path: Path, tmp_path: Path, discreet: Discreet):
    line = f"data get cifar10 --data-dir {tmp_path / 'data'}"
    first, again = discreet(line), discreet(line)
    assert (first.code, first.err, again.code, again.err) == (0, "", 0, "")
    text = " ".join(first.out.split())
    assert text.startswith("cifar10 was downloaded and verified. It is in")
    assert "cifar-10-binary.tar.gz" in text
    assert text.endswith("Licence: none stated")
    assert "exists already, and is verified" in " ".join(again.out.split())


def test_json_says_what_came_and_where_it_lies(published_path: Path, tmp_path: Path, discreet: Discreet):
    line = f"data get cifar10 --json --data-dir {tmp_path / 'data'}"
    found = discreet(line).json
    path = tmp_path / "data" / "cifar10" / "cifar-10-binary.tar.gz"
    assert found == {
        "name": "cifar10",
        "folder": str(path.parent),
        "files": [{"path": str(path), "bytes": published_path.stat().st_size}],
        "downloaded": ["cifar-10-binary.tar.gz"],
        "verified": True,
        "vouched": [],
        "licence": "none stated",
    }
    assert discreet(line).json == {**found, "downloaded": []}


def test_files_in_any_compression_need_no_download(published_path: Path, tmp_path: Path, discreet: Discreet):
    published_path.unlink()
    put(tmp_path / "data" / "cifar10", HELD, ".xz")
    found = discreet(f"data get cifar10 --json --data-dir {tmp_path / 'data'}").json
    assert [Path(file["path"]).name for file in found["files"]] == ["data_batch_1.bin.xz", "test_batch.bin.xz"]


def test_without_a_network_one_sentence_says_what_to_put_where(
    published_path: Path, tmp_path: Path, discreet: Discreet
):
    published_path.unlink()
    ran = discreet(f"data get cifar10 --data-dir {tmp_path / 'data'}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert f"put cifar-10-binary.tar.gz from {published_path.as_uri()} into {tmp_path / 'data' / 'cifar10'}" in ran.err


def test_a_damaged_file_is_refused(published_path: Path, tmp_path: Path, discreet: Discreet):
    put(tmp_path / "data" / "cifar10", HELD)
    (tmp_path / "data" / "cifar10" / "test_batch.bin").write_bytes(b"3" * 500)
    ran = discreet(f"data get cifar10 --data-dir {tmp_path / 'data'}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "Delete it, then: discreet data get cifar10" in ran.err


@pytest.mark.parametrize("name", ["femnist", "acs_income", "lending-club"])
def test_what_cant_be_downloaded_says_what_to_put_where(name: str, tmp_path: Path, discreet: Discreet):
    ran = discreet(f"data get {name} --data-dir {tmp_path}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"{tmp_path / name.replace('_', '-')} has no" in ran.err
    assert "Put there" in ran.err
    assert list(tmp_path.iterdir()) == []


def vouch(data: Path, name: str, content: bytes) -> None:
    folder, file = data / dataset_catalog.DATA_SETS[name].folder, next(iter(dataset_catalog.DATA_SETS[name].files))
    put(folder, {file: content, f"{file}.sha256": hashlib.sha256(content).hexdigest().encode()})


def test_a_file_of_ones_own_is_read_as_one_vouches_and_not_called_verified(
    tmp_path: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch
):
    publish(monkeypatch, "acs_income", {"WY.csv": b"known"})
    row = b"17,1,1,1,10,1,0,1,1,1,0\n"
    vouch(tmp_path, "acs_income", b"AGEP,COW,SCHL,MAR,OCCP,POBP,RELP,WKHP,SEX,RAC1P,PINCP\n" + row)
    text = " ".join(discreet(f"data get acs_income --data-dir {tmp_path}").out.split())
    assert text.startswith(
        "acs_income can be read, and you vouch for its contents: its file has no published checksum."
    )
    assert "verified" not in text
    assert text.endswith("Licence: unknown")
    found = discreet(f"data get acs_income --json --data-dir {tmp_path}").json
    assert (found["verified"], found["vouched"], found["licence"]) == (False, ["WY.csv"], None)
    listed = discreet(f"data list --data-dir {tmp_path}").out.splitlines()
    assert "acs_income - 2 - vouched - unknown" in [" ".join(line.split()) for line in listed]
    assert "acs_income: your own file, which you vouch for; its numbers are not known." in listed
    rows = {row["name"]: row for row in discreet(f"data list --json --data-dir {tmp_path}").json["data_sets"]}
    own = rows["acs_income"]
    assert (own["here"], own["train"], own["test"], own["bytes"], own["natural_clients"]) == ("vouched", *[None] * 4)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("acs_income", b"AGEP,PINCP\n30,1\n", "AK.csv must have the columns AGEP,COW"),
        ("femnist", b"not an npz file", "femnist_540_writers.npz is not an npz file"),
        ("lending_club", b"\n", "loans_2007_2011.csv must have a column"),
    ],
)
def test_what_one_vouches_for_must_be_readable(
    name: str, content: bytes, sentence: str, tmp_path: Path, discreet: Discreet
):
    vouch(tmp_path, name, content)
    ran = discreet(f"data get {name} --data-dir {tmp_path}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert sentence in ran.err


def test_an_unknown_name_lists_the_known_ones(discreet: Discreet):
    ran = discreet("data get mnits")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "mnist, fashion_mnist, cifar10" in ran.err


def test_a_person_who_waits_sees_a_bar_on_stderr(
    published_path: Path, tmp_path: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    ran = discreet(f"data get cifar10 --data-dir {tmp_path / 'data'}")
    assert "cifar-10-binary.tar.gz" in ran.err
    assert discreet(f"data get cifar10 --json --data-dir {tmp_path / 'other'}").err == ""


def test_the_list_says_what_is_here_without_reading_it(published_path: Path, tmp_path: Path, discreet: Discreet):
    put(tmp_path / "data" / "cifar10", {**HELD, "test_batch.bin": b"3" * 500})  # of the right size
    put(
        tmp_path / "data" / "acs-income",
        {"TX.csv": b"own", "TX.csv.sha256": hashlib.sha256(b"own").hexdigest().encode()},
    )
    ran = discreet(f"data list --json --data-dir {tmp_path / 'data'}")
    rows = {row["name"]: row for row in ran.json["data_sets"]}
    assert list(rows) == list(dataset_catalog.DATA_SETS)
    assert {name: row["here"] for name, row in rows.items() if row["here"] != "no"} == {
        "cifar10": "yes",
        "acs_income": "partly",
    }
    assert (rows["mnist"]["train"], rows["mnist"]["test"], rows["mnist"]["classes"]) == (60_000, 10_000, 10)
    assert rows["mnist"]["natural_clients"] == "539 writers"
    assert (rows["cifar10"]["bytes"], rows["cifar10"]["can_be_downloaded"]) == (published_path.stat().st_size, True)
    assert (rows["lending_club"]["classes"], rows["lending_club"]["can_be_downloaded"]) == (None, False)
    assert (rows["acs_income"]["classes"], rows["acs_income"]["held_out"], rows["mnist"]["held_out"]) == (2, 0.2, None)


def test_the_list_is_a_table_of_80_columns(tmp_path: Path, discreet: Discreet):
    vouch(tmp_path, "lending_club", b"own")
    out = discreet(f"data list --data-dir {tmp_path}").out
    lines = out.splitlines()
    assert lines[0].split() == ["data", "set", "examples", "classes", "size", "here", "clients", "licence"]
    count = len(dataset_catalog.DATA_SETS)
    assert [line.split()[0] for line in lines[1 : count + 1]] == list(dataset_catalog.DATA_SETS)
    assert "…" not in out
    assert max(map(len, lines[: count + 1])) <= 80
    assert "By default 20% of acs_income and lending_club is held out for testing." in lines
    assert lines[1].split() == ["mnist", "70,000", "10", "12.1", "MB", "no", "539", "writers", "CC", "BY-SA", "3.0"]


def test_the_place_may_be_named_by_the_environment(tmp_path: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    assert discreet("data list --json").json["folder"] == str(tmp_path)
