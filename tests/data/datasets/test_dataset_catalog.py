"""The catalog is complete: every download has its checksum, every file is in one, and no private folder is named."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest

from discreet.data.datasets.dataset_catalog import DATA_SETS, DataSet, find_data_set
from discreet.data.tasks.acs_income import AcsIncome
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.lending_club import LendingClub
from discreet.data.tasks.owner_files import READERS
from discreet.errors import InvalidInput

ALL = list(DATA_SETS.values())
CHECKSUM = re.compile(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}")


def test_every_data_set_has_a_task_of_its_name():
    assert set(DATA_SETS) <= {getattr(task, "kind", None) for task in get_args(get_args(AnyTask)[0])}


@pytest.mark.parametrize("data", ALL, ids=lambda data: data.name)
def test_a_set_can_be_downloaded_or_says_what_to_put_there(data: DataSet):
    assert bool(data.downloads) != bool(data.by_hand)
    assert data.files
    assert set(data.optional) <= set(data.files)
    assert data.licence


@pytest.mark.parametrize("data", ALL, ids=lambda data: data.name)
def test_every_file_has_a_checksum_or_an_archive_that_has_one(data: DataSet):
    for file in data.files.values():
        assert file.size > 0
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert file.sha256 or any(each.inside for each in data.downloads)
    for each in data.downloads:
        assert CHECKSUM.fullmatch(each.checksum)
        assert all(re.match("https?://", url) and url.endswith(each.name) for url in each.urls)
        assert each.inside or Path(each.name).stem in data.files


def test_every_line_with_a_checksum_is_another_file_of_its_data_set():
    entries = tomllib.loads(files("discreet.data.datasets").joinpath("data_sets.toml").read_text(encoding="utf-8"))
    for name, entry in entries.items():
        assert len(entry["files"].split()) == 3 * len(DATA_SETS[name].files)


def test_51_states_and_24_emnist_files():
    assert len(DATA_SETS["acs_income"].files) == 51
    assert len(DATA_SETS["emnist"].files) == 24
    assert (
        DATA_SETS["emnist"].files["emnist-byclass-train-images-idx3-ubyte"].size == 16 + 784 * DATA_SETS["emnist"].train
    )


def test_a_name_may_be_written_as_its_folder_is():
    assert find_data_set("fashion-mnist") is find_data_set("fashion_mnist")
    with pytest.raises(InvalidInput, match=r"must be one of mnist, .*, and got 'mnits'"):
        find_data_set("mnits")


def test_what_is_held_out_by_default_is_what_the_tasks_hold_out():
    shares = {"acs_income": AcsIncome().test_fraction, "lending_club": LendingClub().test_fraction}
    assert {data.name: data.held_out for data in ALL if data.held_out} == shares
    assert all(data.held_out for data in ALL if not data.test)


def test_every_set_that_is_put_there_by_hand_can_be_looked_into():
    assert set(READERS) == {data.name for data in ALL if data.by_hand}
