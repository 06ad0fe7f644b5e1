"""The contract of an aggregation: how updates are encoded for their sum, and how the sum is decoded."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, Self

from discreet.contract import contract
from discreet.lazy_torch import torch
from discreet.params import Params, sum_clients
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid, Load
from discreet.secure_sums.lattice.lattice_encoding import Encoding


@contract("aggregation", defaults=["grid", "wraparound_probability"], is_secure=False)
class Aggregation(Protocol):
    """Encodes updates, sums them, and decodes the sum.

    Whether the server learns only the sum decides against whom a guarantee holds, so each aggregation states it. The
    other members have defaults that sum real numbers as they are: bounded rows stay bounded, and without a lattice
    integer noise has no price and is refused.
    """

    @property
    @abstractmethod
    def is_secure(self) -> bool:
        """Whether the server learns only the sum."""

    @property
    def ring_bits(self) -> int | None:
        """Bits of the ring that integers are summed in; None without a ring, or if unknown. For plans and cards."""
        return None

    @property
    def needs_each_upload(self) -> bool:
        """Whether engines must keep all uploads of a round and pass them to `combine`; by default they add them up.

        Where it is true, a mechanism is refused whose noise is enough on a sum only.
        """
        return False

    def combine(self, rows: Params) -> Params:
        """Combine all n uploads of a round, one row for each, into n times a kind of mean; by default into their sum.

        The order of the rows must not matter. It is post-processing: every upload already carries its noise.
        """
        return sum_clients(rows)

    def for_sum(self, dimension: int | None, load: Load | None) -> Self:
        """Return a copy with the fields that follow from the model size and from what a sum carries, if known."""
        return self

    def for_moments(self) -> Aggregation | None:
        """Return the aggregation for a sum of moments, with what follows from a sum still open; by default none can."""
        return None

    def check_load(self, load: Load | None) -> None:
        """Refuse a configured scale that doesn't suit what a sum carries.

        By default there is no scale. A sum that wraps around is spoilt and reveals nothing, so no guarantee depends on
        this check.
        """
        return

    def wraparound_probability(self, load: Load | None) -> float | None:
        """Bound the probability that a sum that carries this load wraps around; None without a ring, or if unknown."""
        return None

    def grid(self, times: int, added: int) -> Grid | None:
        """Return the lattice that integer noise is priced on; None if updates are real numbers.

        None is the refusing value: integer noise without a lattice protects nobody.

        Args:
            times: Sums that an update is made up of.
            added: Most vectors that are added up in one of them before rounding.
        """
        return None

    def encoding(self, round: int, params: Params, times: int) -> Encoding | None:
        """Return how a round puts updates on the lattice; None if they are real numbers."""
        return None

    def encode(self, unit: Params, encoding: Encoding | None, rows: Rows, *, bounded: bool) -> Params:
        """Encode rows for the sum; by default they stay as they are.

        Args:
            unit: The rows, in units of the clip norm.
            encoding: How the round puts updates on the lattice.
            rows: Random streams for rounding, one for each client.
            bounded: Whether rows have a norm of at most 1. If not, integers from training stay as they are.
        """
        return unit

    def decode(self, total: Params, encoding: Encoding | None, like: Params) -> Params:
        """Decode the sum into the units of the rows and the shapes of `like`: post-processing of what is released."""
        return total

    def coordinates(self, kept: int) -> int:
        """Return how many values are sent for `kept` coordinates of an update; for traffic only."""
        return kept

    def bits_per_coordinate(self, dtype: torch.dtype) -> int:
        """Return the bits that one coordinate takes on its way to the server, for models of this precision.

        By default those of the model; for traffic only.
        """
        return 8 * dtype.itemsize
