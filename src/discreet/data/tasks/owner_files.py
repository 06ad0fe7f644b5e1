"""Files that their owner vouches for, read as their task would read them: what can't be used is told at once."""

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


def check_readable(read: FileContent) -> None:
    """Refuse, in a sentence, what the file's task could not read."""
    for name, reader in READERS.items():
        if read.name in find_data_set(name).files:
            reader(read)
