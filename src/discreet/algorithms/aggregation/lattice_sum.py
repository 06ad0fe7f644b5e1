"""Updates as integers in a ring, for secure sums: the server learns only the sum."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field

from discreet.algorithms.aggregation.aggregation import Aggregation
from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.params import Params, count_values
from discreet.part import Count, Flag, Index, Positive, Probability, part
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice import scale as lattice_scale
from discreet.secure_sums.lattice.grid import Grid, Load
from discreet.secure_sums.lattice.lattice_encoding import Encoding
from discreet.secure_sums.lattice.ring import MOST_BITS
from discreet.secure_sums.lattice.rotation import Rotation, padded_dimension
from discreet.secure_sums.ring_bits import LEAST_BITS


@part
class Lattice(Aggregation):
    """Scale updates, round them at random, and sum modulo 2^bits.

    `bits` and `scale` follow from what a sum carries. The bits are the fewest with which rounding costs at most 1 %
    more noise. The scale is the largest at which a sum wraps around with probability at most `wraparound`, which spoils
    the sum and reveals nothing; a larger scale is refused. `rotated` spreads each update over its coordinates by a
    public random rotation, new in every round, which pays if bits are few.

    Guarantee: integer noise is priced by the sensitivity after rounding.
    """

    kind: Literal["lattice"] = "lattice"
    bits: Annotated[Count, Field(ge=LEAST_BITS, le=MOST_BITS)] | None = None  # None: follows from what a sum carries
    scale: Positive | None = None  # None: follows from what a sum carries
    rotated: Flag = False
    seed: Index = 0  # of the public rotations
    wraparound: Probability = 1e-9
    dimension: Count | None = None  # of the model; follows from it

    is_secure = True

    @property
    def ring_bits(self) -> int | None:
        return self.bits

    def for_sum(self, dimension: int | None, load: Load | None) -> Self:
        if dimension is not None:
            self._check_dimension(dimension)
        dimension = self.dimension or dimension
        lattice_sum = replace(self, dimension=dimension)
        if dimension is None or load is None:
            return lattice_sum
        if lattice_sum.bits is None:
            fewest = lattice_scale.fewest_bits(lattice_sum._plan(dimension, load), self.wraparound, self.scale)
            lattice_sum = replace(lattice_sum, bits=max(LEAST_BITS, fewest))
        if lattice_sum.scale is None:
            lattice_sum = replace(
                lattice_sum, scale=lattice_scale.fit_scale(lattice_sum._plan(dimension, load), self.wraparound).scale
            )
        return lattice_sum

    def for_moments(self) -> Self:
        return replace(self, bits=None, scale=None, dimension=None)

    def check_load(self, load: Load | None) -> None:
        if self.scale is not None and self.dimension is not None and load is not None:
            lattice_scale.check_scale(self._plan(self.dimension, load), self.scale, self.wraparound)

    def wraparound_probability(self, load: Load | None) -> float | None:
        if self.scale is None or self.dimension is None or load is None:
            return None
        return lattice_scale.wraparound_probability(self._plan(self.dimension, load), self.scale)

    def grid(self, times: int, added: int) -> Grid | None:
        if self.scale is None or self.dimension is None:
            return None
        return Grid(self.scale, self.coordinates(self.dimension), times, added)

    def encoding(self, round: int, params: Params, times: int) -> Encoding | None:
        assert self.bits is not None
        assert self.scale is not None
        assert self.dimension is not None
        self._check_dimension(count_values(params))
        device = next(iter(params.values())).device
        rotation = Rotation.draw(self.dimension, self._rotation_generator(round)) if self.rotated else None
        if rotation is not None:
            rotation = replace(rotation, signs=rotation.signs.to(device))
        return Encoding(self.scale, self.bits, times, rotation)

    def encode(self, unit: Params, encoding: Encoding | None, rows: Rows, *, bounded: bool) -> Params:
        assert encoding is not None
        if not bounded and all(value.dtype == torch.int64 for value in unit.values()):
            return unit  # bounded rows are rounded here, where their norm is checked
        uniform = rows.open().uniform
        return encoding.encode_bounded(unit, uniform) if bounded else encoding.encode_sum(unit, uniform)

    def decode(self, total: Params, encoding: Encoding | None, like: Params) -> Params:
        assert encoding is not None
        return encoding.decode(total, like)

    def coordinates(self, kept: int) -> int:
        """Return `kept`, padded to a power of two if there is a rotation."""
        return padded_dimension(kept) if self.rotated else kept

    def bits_per_coordinate(self, dtype: torch.dtype) -> int:
        return self.bits or MOST_BITS  # an upper bound while they are open

    def _check_dimension(self, dimension: int) -> None:
        """Refuse another model size: with fewer values than are rounded, rounding would be priced too low."""
        if self.dimension not in (None, dimension):
            raise InvalidInput(
                f"The lattice is laid out for a model of {self.dimension:,} numbers, and this one has {dimension:,}.",
                fix="Leave aggregation.dimension out: it follows from the model.",
            )

    def _plan(self, dimension: int, load: Load) -> lattice_scale.SumPlan:
        return lattice_scale.SumPlan(
            bits=self.bits or MOST_BITS,
            vectors=load.vectors,
            sums=load.sums,
            clip_norm=load.norm,
            dimension=self.coordinates(dimension),
            noise_deviation=load.deviation,
            shares=load.shares,
            noise=load.noise,
            rotated=self.rotated,
        )

    def _rotation_generator(self, round: int) -> torch.Generator:
        """Return the round's generator. It is on the CPU, where a seed gives the same numbers on every machine."""
        seed = hashlib.blake2b(f"rotation {self.seed} {round}".encode(), digest_size=8).digest()
        return torch.Generator().manual_seed(int.from_bytes(seed, "little", signed=True))
