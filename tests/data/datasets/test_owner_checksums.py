"""A file of one's own is read where its owner vouches for it, and never taken for the one that is known."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest

from discreet.data.datasets.dataset_catalog import DATA_SETS
from discreet.data.datasets.dataset_files import content, contents
from discreet.data.datasets.dataset_presence import Held, glance, verified
from discreet.data.datasets.owner_checksums import Content, own_checksums, own_facts
from discreet.data.tasks import acs_income, lending_club
from discreet.errors import InvalidInput
from discreet.paths import Places
from tests.data.datasets.published import publish, put

OWN = b"AGEP,PINCP\n30,1\n"
SHA256 = hashlib.sha256(OWN).hexdigest()
PUBLIC = "ACSIncome is public data."


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places.of(data=tmp_path)


@pytest.fixture
def folder(places: Places) -> Path:
    put(places.data / "acs-income", {"TX.csv": OWN}, ".gz")
    return places.data / "acs-income"


def test_a_file_of_ones_own_needs_the_checksum_of_its_uncompressed_content(places: Places, folder: Path):
    with pytest.raises(InvalidInput, match=r"sha256 of its uncompressed content into TX.csv.sha256 beside it"):
        content(places, "acs_income", "TX.csv")
    (folder / "TX.csv.sha256").write_text(f"{SHA256.upper()}  TX.csv\n")
    assert content(places, "acs_income", "TX.csv") == Content("TX.csv", OWN, vouched=SHA256)
    (folder / "TX.csv.gz").write_bytes(gzip.compress(OWN + b"1,1\n"))
    with pytest.raises(InvalidInput, match=f"not the file that is vouched for beside it: .* should be {SHA256}"):
        content(places, "acs_income", "TX.csv")


def test_one_file_of_checksums_vouches_for_all(places: Places, folder: Path):
    put(folder, {"WY.csv": OWN + b"40,0\n"})
    other = hashlib.sha256(OWN + b"40,0\n").hexdigest()
    (folder / "SHA256SUMS").write_text(f"{SHA256}  TX.csv\n\n{other} *./WY.csv\n")
    read = contents(places, "acs_income", ["TX.csv", "WY.csv"])
    assert [each.vouched for each in read] == [SHA256, other]


def test_the_known_file_is_known_whatever_is_said_of_it(places: Places, monkeypatch: pytest.MonkeyPatch):
    data = publish(monkeypatch, "acs_income", {"TX.csv": OWN})
    put(places.data / "acs-income", {"TX.csv": OWN, "SHA256SUMS": f"{SHA256}  TX.csv".encode()})
    assert content(places, "acs_income", "TX.csv").vouched is None
    assert glance(places, data) == "yes"


def test_a_file_shorter_than_the_known_one_is_first_of_all_cut_short(places: Places, folder: Path):
    known = DATA_SETS["acs_income"].files["TX.csv"].size
    with pytest.raises(InvalidInput, match=rf"known: it is cut short at 16 of {known:,} bytes.* Put the whole file"):
        content(places, "acs_income", "TX.csv")


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_an_empty_file_is_never_accepted(ending: str, places: Places):
    nothing = hashlib.sha256(b"").hexdigest().encode()
    put(places.data / "acs-income", {"TX.csv": b""}, ending)
    put(places.data / "acs-income", {"TX.csv.sha256": nothing})
    with pytest.raises(InvalidInput, match=r"TX.csv.* needs: it is empty. Put the whole file there"):
        content(places, "acs_income", "TX.csv")


@pytest.mark.parametrize(
    ("text", "got"), [("", "nothing"), ("\n", "nothing"), ("0", "'0'"), (SHA256[:-1] + "g", f"'{SHA256[:-1]}g'")]
)
def test_a_checksum_has_64_hexadecimal_digits(text: str, got: str, places: Places, folder: Path):
    (folder / "TX.csv.sha256").write_text(text)
    sentence = f"{folder / 'TX.csv.sha256'} must start with the 64 hexadecimal digits of a sha256, and holds {got}."
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        content(places, "acs_income", "TX.csv")
    assert glance(places, DATA_SETS["acs_income"]) == "no"


def test_a_torn_line_of_checksums_is_named(places: Places, folder: Path):
    (folder / "SHA256SUMS").write_text(f"{SHA256}  TX.csv\n{SHA256}\n")
    with pytest.raises(InvalidInput, match=r"Line 2 of .*SHA256SUMS must be a sha256 of 64 hexadecimal digits"):
        content(places, "acs_income", "TX.csv")


def test_a_set_of_ones_own_is_here_as_vouched_and_looked_into(places: Places, monkeypatch: pytest.MonkeyPatch):
    data = publish(monkeypatch, "acs_income", {"TX.csv": b"known", "WY.csv": b"too"})
    folder = places.data / "acs-income"
    put(folder, {"TX.csv": OWN, "TX.csv.sha256": SHA256.encode()})
    assert glance(places, data) == "partly"
    put(folder, {"WY.csv": b"too"})
    assert glance(places, data) == "vouched"
    seen: list[Content] = []
    assert verified(places, data, seen.append) == [Held(folder / "TX.csv", SHA256), Held(folder / "WY.csv")]
    assert seen == [Content("TX.csv", OWN, SHA256)]


def test_the_card_says_whose_a_file_is():
    known, own = Content("WY.csv", b"known"), Content("TX.csv", OWN, SHA256)
    assert (own_facts([known], PUBLIC), own_checksums([known])) == ((PUBLIC,), ())
    (said,) = own_facts([own], PUBLIC)
    assert said.startswith("TX.csv is as the data's owner vouches")
    assert own_facts([own, known], PUBLIC) == (said, f"Of the other files: {PUBLIC}")
    assert own_checksums([own, known])[0].endswith(f"shows: {SHA256} of TX.csv.")


def test_many_files_are_told_by_one_checksum_that_sha256sum_gives_too():
    many = [Content(name, OWN, SHA256) for name in ("d", "b", "a", "c")]
    assert own_facts(many, PUBLIC)[0].startswith("4 files from a to d are as")
    sums = "".join(f"{SHA256}  {name}\n" for name in "abcd")
    assert f"{hashlib.sha256(sums.encode()).hexdigest()} of the sorted SHA256SUMS of 4 files" in own_checksums(many)[0]


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
