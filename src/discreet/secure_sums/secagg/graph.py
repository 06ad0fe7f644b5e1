"""The graph of neighbours, which share masks and hold each other's shares.

Each client has a place on a circle in an order drawn from the digest of everybody's keys, and its neighbours are the
nearest on both sides: a Harary graph with random places (Bell et al., 2020, Algorithm 1 and §3). With as many
neighbours as there are others, all pairs.
"""

import hashlib
from collections.abc import Collection, Sequence


def place_on_circle(present: Collection[int], seed: bytes) -> list[int]:
    """Return the clients in the order of their places, which is random to anyone who did not choose the seed."""
    return sorted(present, key=lambda client: hashlib.sha256(seed + client.to_bytes(8, "little")).digest())


def neighbours(client: int, around: Sequence[int], degree: int) -> tuple[int, ...]:
    """Return a client's neighbours on the circle in ascending order. `degree` is even, or reaches everybody."""
    return _neighbours_at(around.index(client), around, degree)


def neighbourhoods(around: Sequence[int], degree: int) -> dict[int, tuple[int, ...]]:
    """Return the neighbours of every client on the circle."""
    return {client: _neighbours_at(place, around, degree) for place, client in enumerate(around)}


def _neighbours_at(place: int, around: Sequence[int], degree: int) -> tuple[int, ...]:
    size, reach = len(around), degree // 2
    if degree >= size - 1:
        return tuple(sorted(client for client in around if client != around[place]))
    return tuple(sorted(around[(place + step) % size] for step in range(-reach, reach + 1) if step))
