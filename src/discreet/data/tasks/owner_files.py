"""Files that their owner vouches for, read as their task would read them: what can't be used is told at once."""

from collections.abc import Callable, Mapping
from typing import Any

from discreet.data.datasets.dataset_catalog import named
from discreet.data.datasets.owner_checksums import Content
from discreet.data.tasks import acs_income, femnist, lending_club

READERS: Mapping[str, Callable[[Content], Any]] = {
    "femnist": femnist.arrays,
    "acs_income": acs_income.table,
    "lending_club": lending_club.numbers,
}


def look(read: Content) -> None:
    """Refuse, in a sentence, what the file's task could not read."""
    for name, reader in READERS.items():
        if read.name in named(name).files:
            reader(read)
