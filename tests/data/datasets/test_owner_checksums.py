"""A user's own file is read if its owner gives a checksum, and is never confused with the published one."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest

from discreet.data.datasets.dataset_catalog import DATA_SETS
from discreet.data.datasets.dataset_files import read_data_file, read_data_files
from discreet.data.datasets.dataset_presence import LocalFile, check_presence, verify_files
from discreet.data.datasets.owner_checksums import FileContent, describe_origin, disclose_checksums
from discreet.data.tasks import acs_income, lending_club
from discreet.errors import InvalidInput
from discreet.paths import Paths
from tests.data.datasets.small_datasets import publish, put

OWN = b"AGEP,PINCP\n30,1\n"
SHA256 = hashlib.sha256(OWN).hexdigest()
PUBLIC = "ACSIncome is public data."


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.default(data=tmp_path)


@pytest.fixture
def folder(paths: Paths) -> Path:
    put(paths.data / "acs-income", {"TX.csv": OWN}, ".gz")
    return paths.data / "acs-income"


def test_a_file_of_ones_own_needs_the_checksum_of_its_uncompressed_content(paths: Paths, folder: Path):
    with pytest.raises(InvalidInput, match=r"sha256 of its uncompressed content into TX.csv.sha256 in the same folder"):
        read_data_file(paths, "acs_income", "TX.csv")
    (folder / "TX.csv.sha256").write_text(f"{SHA256.upper()}  TX.csv\n")
    assert read_data_file(paths, "acs_income", "TX.csv") == FileContent("TX.csv", OWN, owner_sha256=SHA256)
    (folder / "TX.csv.gz").write_bytes(gzip.compress(OWN + b"1,1\n"))
    with pytest.raises(InvalidInput, match=f"not the file that its owner vouches for: .* should be {SHA256}"):
        read_data_file(paths, "acs_income", "TX.csv")


def test_one_file_of_checksums_vouches_for_all(paths: Paths, folder: Path):
    put(folder, {"WY.csv": OWN + b"40,0\n"})
    other = hashlib.sha256(OWN + b"40,0\n").hexdigest()
    (folder / "SHA256SUMS").write_text(f"{SHA256}  TX.csv\n\n{other} *./WY.csv\n")
    read = read_data_files(paths, "acs_income", ["TX.csv", "WY.csv"])
    assert [each.owner_sha256 for each in read] == [SHA256, other]


def test_the_known_file_is_known_whatever_is_said_of_it(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    data = publish(monkeypatch, "acs_income", {"TX.csv": OWN})
    put(paths.data / "acs-income", {"TX.csv": OWN, "SHA256SUMS": f"{SHA256}  TX.csv".encode()})
    assert read_data_file(paths, "acs_income", "TX.csv").owner_sha256 is None
    assert check_presence(paths, data) == "yes"


def test_a_file_shorter_than_the_known_one_is_first_of_all_cut_short(paths: Paths, folder: Path):
    known = DATA_SETS["acs_income"].files["TX.csv"].size
    with pytest.raises(
        InvalidInput, match=rf"known file: it is cut short at 16 of {known:,} bytes.* Put the whole file"
    ):
        read_data_file(paths, "acs_income", "TX.csv")


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_an_empty_file_is_never_accepted(ending: str, paths: Paths):
    nothing = hashlib.sha256(b"").hexdigest().encode()
    put(paths.data / "acs-income", {"TX.csv": b""}, ending)
    put(paths.data / "acs-income", {"TX.csv.sha256": nothing})
    with pytest.raises(InvalidInput, match=r"TX.csv.* needs: it is empty. Put the whole file there"):
        read_data_file(paths, "acs_income", "TX.csv")


@pytest.mark.parametrize(
    ("text", "got"), [("", "nothing"), ("\n", "nothing"), ("0", "'0'"), (SHA256[:-1] + "g", f"'{SHA256[:-1]}g'")]
)
def test_a_checksum_has_64_hexadecimal_digits(text: str, got: str, paths: Paths, folder: Path):
    (folder / "TX.csv.sha256").write_text(text)
    sentence = f"{folder / 'TX.csv.sha256'} must start with the 64 hexadecimal digits of a sha256, and got {got}."
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        read_data_file(paths, "acs_income", "TX.csv")
    assert check_presence(paths, DATA_SETS["acs_income"]) == "no"


def test_a_torn_line_of_checksums_is_named(paths: Paths, folder: Path):
    (folder / "SHA256SUMS").write_text(f"{SHA256}  TX.csv\n{SHA256}\n")
    with pytest.raises(InvalidInput, match=r"Line 2 of .*SHA256SUMS must be a sha256 of 64 hexadecimal digits"):
        read_data_file(paths, "acs_income", "TX.csv")


def test_a_set_of_ones_own_is_here_as_vouched_and_looked_into(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    data = publish(monkeypatch, "acs_income", {"TX.csv": b"known", "WY.csv": b"too"})
    folder = paths.data / "acs-income"
    put(folder, {"TX.csv": OWN, "TX.csv.sha256": SHA256.encode()})
    assert check_presence(paths, data) == "partly"
    put(folder, {"WY.csv": b"too"})
    assert check_presence(paths, data) == "vouched"
    seen: list[FileContent] = []
    assert verify_files(paths, data, seen.append) == [
        LocalFile(folder / "TX.csv", SHA256),
        LocalFile(folder / "WY.csv"),
    ]
    assert seen == [FileContent("TX.csv", OWN, SHA256)]


def test_the_card_says_whose_a_file_is():
    known, own = FileContent("WY.csv", b"known"), FileContent("TX.csv", OWN, SHA256)
    assert (describe_origin([known], PUBLIC), disclose_checksums([known])) == ((PUBLIC,), ())
    (said,) = describe_origin([own], PUBLIC)
    assert said.startswith("TX.csv is from the data's owner, who vouches")
    assert describe_origin([own, known], PUBLIC) == (said, f"Of the other files: {PUBLIC}")
    assert disclose_checksums([own, known])[0].endswith(f"whole file: {SHA256} of TX.csv.")


def test_many_files_are_told_by_one_checksum_that_sha256sum_gives_too():
    many = [FileContent(name, OWN, SHA256) for name in ("d", "b", "a", "c")]
    assert describe_origin(many, PUBLIC)[0].startswith("4 files from a to d are from")
    sums = "".join(f"{SHA256}  {name}\n" for name in "abcd")
    assert (
        f"{hashlib.sha256(sums.encode()).hexdigest()} of the sorted SHA256SUMS of 4 files"
        in disclose_checksums(many)[0]
    )


@pytest.mark.parametrize(
    ("name", "needed", "origin"),
    [
        ("femnist", ("images", "labels", "writer", "split", "writer_ids", "writer_complete"), "LEAF's FEMNIST"),
        ("acs_income", (acs_income.HEADER,), "American Community Survey 2018"),
        (
            "lending_club",
            (lending_club.TARGET, lending_club.STATE, *lending_club.NUMBERS, *lending_club.CATEGORIES),
            "Lending Club's published loan statistics 2007-2011",
        ),
    ],
)
def test_what_to_put_there_names_its_origin_and_all_columns(name: str, needed: tuple[str, ...], origin: str):
    said = DATA_SETS[name].by_hand
    assert origin in said
    assert not [column for column in needed if not re.search(rf"\b{re.escape(column)}\b", said)]
