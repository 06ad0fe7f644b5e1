"""Check that a task can read a file that its owner vouches for, before any training."""

from collections.abc import Callable, Mapping
from typing import Any

from discreet.data.datasets.dataset_catalog import find_data_set
from discreet.data.datasets.owner_checksums import FileContent
from discreet.data.tasks import acs_income, femnist, lending_club

READERS: Mapping[str, Callable[[FileContent], Any]] = {
    "femnist": femnist.read_femnist,
    "acs_income": acs_income.read_state,
    "lending_club": lending_club.read_loans,
}


def check_readable(content: FileContent) -> None:
    """Refuse a file that its task can't read."""
    for name, reader in READERS.items():
        if content.name in find_data_set(name).files:
            reader(content)
