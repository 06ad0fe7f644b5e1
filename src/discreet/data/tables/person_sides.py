"""Which persons are held out: each is on one side of a split with all their rows, in every client."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
