"""A random rotation that spreads a vector evenly over its coordinates, so that a ring needs fewer bits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch


@dataclass(frozen=True)
class Rotation:
    """x ↦ H·diag(signs)·x/√d: a Walsh–Hadamard transform after random signs, on vectors padded by zeros to d = 2^m.

    The signs are public, fresh for every round, and the same for all clients. Guarantee: norms stay, up to rounding;
    for a vector that doesn't depend on the signs, each coordinate is sub-Gaussian with variance ‖x‖²/d (Hoeffding).
    """

    dimension: int
    signs: Tensor

    def __post_init__(self) -> None:
        if self.signs.shape != (padded_dimension(self.dimension),):
            raise InvalidInput(
                f"Vectors of {self.dimension} coordinates are rotated with {padded_dimension(self.dimension)} signs, "
                f"and got {tuple(self.signs.shape)}.",
                fix="Draw them with Rotation.drawn.",
            )

    @classmethod
    def draw(cls, dimension: int, generator: torch.Generator) -> Rotation:
        """Draw the signs from public randomness. All clients of a round must use the same ones."""
        coins = torch.randint(2, (padded_dimension(dimension),), generator=generator, device=generator.device)
        return cls(dimension, (2 * coins - 1).to(torch.float64))

    def forward(self, vectors: Tensor) -> Tensor:
        """Rotate vectors […, dimension] to […, 2^m], in float64."""
        room = vectors.new_zeros(*vectors.shape[:-1], len(self.signs), dtype=torch.float64)
        room[..., : self.dimension] = vectors
        return hadamard(room * self.signs.to(room.device))

    def inverse(self, rotated: Tensor) -> Tensor:
        """Rotate vectors […, 2^m] back to […, dimension]."""
        return (hadamard(rotated.to(torch.float64)) * self.signs.to(rotated.device))[..., : self.dimension]


def padded_dimension(dimension: int) -> int:
    """Return the smallest power of two that is at least `dimension`."""
    return 1 << (dimension - 1).bit_length()


def hadamard(vectors: Tensor) -> Tensor:
    """Apply the orthonormal Walsh–Hadamard transform, its own inverse, along the last axis of 2^m coordinates."""
    length = vectors.shape[-1]
    result, half = vectors, 1
    while half < length:
        pairs = result.reshape(*vectors.shape[:-1], length // (2 * half), 2, half)
        first, second = pairs[..., 0, :], pairs[..., 1, :]
        result = torch.stack([first + second, first - second], dim=-2).reshape(vectors.shape)
        half *= 2
    return result / math.sqrt(length)
