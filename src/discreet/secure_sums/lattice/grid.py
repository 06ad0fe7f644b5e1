"""What a lattice is laid out for, and what its noise is priced on."""

from typing import Literal, NamedTuple


class Grid(NamedTuple):
    """The lattice that integer noise is priced on: its steps in a unit, coordinates, and the sums in one update.

    `added` is how many vectors one such sum has at most, whose last digits doubles lose before it is rounded.
    """

    scale: float
    dimension: int
    times: int = 1
    added: int = 1


class Load(NamedTuple):
    """What one sum carries: vectors of at most this norm, and noise of this deviation in as many shares.

    `sums` of the vectors are rounded; None: each is.
    """

    vectors: int
    sums: int | None
    norm: float
    deviation: float
    shares: int
    noise: Literal["skellam", "discrete_gaussian"]
