"""The encoding of one round: rotate, scale and round vectors onto the lattice, and decode their sum."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.lazy_torch import torch
from discreet.params import Params, flatten, norms, unflatten
from discreet.privacy.skellam import l2_after_rounding
from discreet.secure_sums.lattice.ring import decode_sum
from discreet.secure_sums.lattice.rotation import Rotation
from discreet.secure_sums.lattice.rounding import Uniform, round_conditionally, round_stochastically

ROTATED = "rotated"  # the name of a vector that no longer has a model's shape


@dataclass(frozen=True, eq=False)
class Encoding:
    """How updates become integers: `scale` lattice steps per unit, `times` sums per update, each rounded on its own."""

    scale: float
    bits: int
    times: int = 1
    rotation: Rotation | None = None

    def encode_bounded(self, unit: Params, uniform: Uniform) -> Params:
        """Encode rows of norm at most 1 as integers of norm at most `l2_after_rounding(scale, d)`."""
        vectors = self._flatten(unit)
        limit = l2_after_rounding(self.scale, vectors.shape[1])
        return self._restore_shape(round_conditionally(vectors * self.scale, self.scale, limit, uniform), unit)

    def encode_sum(self, unit: Params, uniform: Uniform) -> Params:
        """Encode rows of any norm that one example moves by at most 1/√times: see `l2_of_rounded_sum`."""
        vectors = self._flatten(unit)
        drawn = uniform([vectors.shape[1]] * len(vectors))
        return self._restore_shape(round_stochastically(vectors * self.scale, drawn), unit)

    def decode(self, total: Params, like: Params) -> Params:
        """Decode the sum modulo 2^bits into the units of the rows, as tensors like those of the model."""
        values = decode_sum(flatten(total), self.bits, self.scale)
        if self.rotation is not None:
            values = self.rotation.inverse(values)
        dtype = next(iter(like.values())).dtype
        return {name: value.to(dtype) for name, value in unflatten(values, like).items()}

    def norms(self, block: Params) -> torch.Tensor:
        """Return the norms of real rows, or of lattice rows in the units they were scaled from."""
        real = {name: value.to(torch.float64) for name, value in block.items()}
        on_lattice = any(value.dtype == torch.int64 for value in block.values())
        return norms(real) / (self.scale if on_lattice else 1.0)

    def zero(self, like: Params) -> Params:
        """Return the sum over no clients."""
        if self.rotation is not None:
            return {ROTATED: torch.zeros_like(self.rotation.signs, dtype=torch.int64)}
        return {name: torch.zeros_like(value, dtype=torch.int64) for name, value in like.items()}

    def as_tensors(self) -> Params:
        """Return the encoding as tensors, which are part of a broadcast's digest."""
        numbers = torch.tensor([self.scale, self.bits, self.times], dtype=torch.float64)
        return {"numbers": numbers} | ({} if self.rotation is None else {"signs": self.rotation.signs})

    @property
    def step(self) -> float:
        """How far one example moves each sum, in lattice steps, before rounding."""
        return self.scale / math.sqrt(self.times)

    def _flatten(self, unit: Params) -> torch.Tensor:
        vectors = flatten_block(unit)
        return vectors if self.rotation is None else self.rotation.forward(vectors)

    def _restore_shape(self, integers: torch.Tensor, unit: Params) -> Params:
        if self.rotation is not None:
            return {ROTATED: integers}
        return unflatten(integers, {name: value[0] for name, value in unit.items()})


def flatten_block(block: Params) -> torch.Tensor:
    """Return a row of doubles for each client: float32 has too few digits for a large scale."""
    return flatten(block, leading=1).to(torch.float64)
