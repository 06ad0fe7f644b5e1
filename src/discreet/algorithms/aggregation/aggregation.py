"""The contract of an aggregation: how updates travel to their sum, and back."""

from typing import Protocol, Self

import torch

from discreet.params import Params
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice import Encoding, Grid, Load


class Aggregation(Protocol):
    @property
    def is_secure(self) -> bool:
        """Whether whoever sums learns nothing but the sum."""

    def for_sum(self, dimension: int | None, load: Load | None) -> Self:
        """The same with the numbers that follow from the model, and from what a sum carries, where that is known."""

    def check_load(self, load: Load | None) -> None:
        """Refuse a scale of one's own that doesn't suit what a sum carries."""

    def wraparound_probability(self, load: Load | None) -> float | None:
        """At most how often one sum that carries this leaves its ring; None without one, or where that is open."""

    def grid(self, times: int, added: int) -> Grid | None:
        """What integer noise is priced on, for an update of so many sums, in each of which at most so many are added
        up before they are rounded; None where updates are real numbers."""

    def encoding(self, round: int, params: Params, times: int) -> Encoding | None:
        """The round's way onto the lattice; None where updates are real numbers."""

    def encode(self, unit: Params, encoding: Encoding | None, rows: Rows, *, bounded: bool) -> Params:
        """Rows as they are summed, of norm at most 1 if `bounded`; else, what training put on the lattice stays so."""

    def decode(self, total: Params, encoding: Encoding | None, like: Params) -> Params:
        """The sum, back in the units of the rows and in the shape of `like`."""

    def coordinates(self, kept: int) -> int:
        """How many numbers are sent for so many of an update."""

    def bits_per_coordinate(self, dtype: torch.dtype) -> int:
        """How many bits one coordinate takes on its way to the server, where models have this precision."""
