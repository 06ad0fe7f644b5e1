"""What a lattice is laid out for, and what its noise is priced on."""

from typing import Literal, NamedTuple


class Grid(NamedTuple):
    """The lattice that integer noise is priced on: its steps in a unit, coordinates, and the sums in one update."""

    scale: float
    dimension: int
    times: int = 1


class Load(NamedTuple):
    """What one sum carries: vectors of at most this norm, and noise of this deviation in as many shares."""

    vectors: int
    norm: float
    deviation: float
    shares: int
    noise: Literal["skellam", "discrete_gaussian"]
