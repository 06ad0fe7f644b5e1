"""Which persons are held out: each is on one side of a split with all their rows, in every client and file."""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.data.tables.table import Table
from discreet.data.tables.table_encoding import read_names
from discreet.errors import InvalidInput
from discreet.privacy.release import Person

TRAINING = 0  # the side of rows that are trained on


def split_persons(persons: Sequence[str], clients: NDArray[np.int64], shares: Sequence[float]) -> NDArray[np.int64]:
    """Return the side of each row: 0 to train on, or i if the i-th share holds it out.

    The side of a person follows from the name alone. So it is the same in all clients, also on machines that know
    nothing of each other, in every run, and whoever else is in the table. One exception: a client that would have
    nothing to train on keeps a person, in all clients that hold rows of this person.

    Args:
        persons: The name of each row's person.
        clients: The number of each row's client.
        shares: The shares of persons that are held out. Each is of those that the shares before it leave.
    """
    names, which = np.unique(np.array(persons, dtype=object).astype(str), return_inverse=True)
    places = np.array([_place(name) for name in names])
    sides = _side_of(places, shares)
    trains = np.bincount(clients, weights=sides[which] == TRAINING)
    for client in np.flatnonzero(trains == 0):
        own = which[clients == client]
        if own.size:
            sides[own[places[own].argmax()]] = TRAINING  # the last that would be held out, if shares grew
    return np.asarray(sides[which])


def check_other_persons(table: Table, person: Person, persons: Collection[str], training: str) -> None:
    """Refuse a table of validation rows that has rows of persons of the training table.

    Such a person would be on both sides: a score on these rows reveals more about them than the promise counts.

    Args:
        table: The validation rows.
        person: The column that names persons.
        persons: The persons of the training table.
        training: The name of the training table.

    Raises:
        InvalidInput: A person is in both tables, or the column is not in this one.
    """
    name = Path(table.path).name
    if person.column not in table.columns:
        raise InvalidInput(
            f"{name} must have the column {person.column!r}, which names persons, so that nobody is in {training} too.",
            fix="Add the column, or hold out persons of the table itself: validation_fraction.",
        )
    column, known = table.columns.index(person.column), set(persons)
    for chunk in table.chunks():
        for line, found in zip(chunk.rows, read_names(table, chunk, column, "person"), strict=True):
            if found in known:
                raise InvalidInput(
                    f"A person must be in one of {training} and {name}, and the one in {table.row} {line} of {name} is "
                    "in both.",
                    fix="Take the rows of such persons out of one table, or hold out persons: validation_fraction.",
                )


def _place(name: str) -> float:
    """Return where the person is among all persons: a number from 0 to 1 that looks drawn at random."""
    digest = hashlib.blake2b(name.encode(), digest_size=8, person=b"discreet split").digest()
    return int.from_bytes(digest, "big") / 2**64


def _side_of(places: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.int64]:
    sides, end = np.full(places.shape, TRAINING, dtype=np.int64), 0.0
    for side, share in enumerate(shares, start=1):
        start, end = end, end + (1 - end) * share
        sides[(start <= places) & (places < end)] = side
    return sides
