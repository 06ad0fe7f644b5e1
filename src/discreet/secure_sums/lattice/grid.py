"""The lattice that noise is priced on, and the load of one sum."""

from typing import Literal, NamedTuple


class Grid(NamedTuple):
    """The lattice that integer noise is priced on.

    Attributes:
        scale: Lattice steps per unit.
        dimension: Coordinates.
        times: Sums in one update, each rounded on its own.
        added: The most vectors in one such sum; adding them in doubles loses last digits before the rounding.
    """

    scale: float
    dimension: int
    times: int = 1
    added: int = 1


class Load(NamedTuple):
    """What one sum holds: `vectors` of at most `norm`, and noise of this deviation in `shares` shares.

    `sums` partial sums of the vectors are rounded; with None, each vector is rounded.
    """

    vectors: int
    sums: int | None
    norm: float
    deviation: float
    shares: int
    noise: Literal["skellam", "discrete_gaussian"]
