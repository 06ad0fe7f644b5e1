"""The contract of an aggregation: how updates are encoded for their sum, and how the sum is decoded."""

from typing import Protocol, Self

import torch

from discreet.params import Params
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid, Load
from discreet.secure_sums.lattice.lattice_encoding import Encoding


class Aggregation(Protocol):
    """Encodes updates, sums them, and decodes the sum."""

    @property
    def is_secure(self) -> bool:
        """Whether the server learns only the sum."""

    def for_sum(self, dimension: int | None, load: Load | None) -> Self:
        """Return a copy with the fields that follow from the model size and from what a sum carries, if known."""

    def check_load(self, load: Load | None) -> None:
        """Refuse a configured scale that doesn't suit what a sum carries."""

    def wraparound_probability(self, load: Load | None) -> float | None:
        """Bound the probability that a sum that carries this load wraps around; None without a ring, or if unknown."""

    def grid(self, times: int, added: int) -> Grid | None:
        """Return the lattice that integer noise is priced on; None if updates are real numbers.

        Args:
            times: Sums that an update is made up of.
            added: Most vectors that are added up in one of them before rounding.
        """

    def encoding(self, round: int, params: Params, times: int) -> Encoding | None:
        """Return how a round puts updates on the lattice; None if they are real numbers."""

    def encode(self, unit: Params, encoding: Encoding | None, rows: Rows, *, bounded: bool) -> Params:
        """Encode rows for the sum.

        Args:
            unit: The rows, in units of the clip norm.
            encoding: How the round puts updates on the lattice.
            rows: Random streams for rounding, one for each client.
            bounded: Whether rows have a norm of at most 1. If not, integers from training stay as they are.
        """

    def decode(self, total: Params, encoding: Encoding | None, like: Params) -> Params:
        """Decode the sum into the units of the rows and the shapes of `like`."""

    def coordinates(self, kept: int) -> int:
        """Return how many values are sent for `kept` coordinates of an update."""

    def bits_per_coordinate(self, dtype: torch.dtype) -> int:
        """Return the bits that one coordinate takes on its way to the server, for models of this precision."""
