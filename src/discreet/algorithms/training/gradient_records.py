"""Per-example gradients of one parameter: their norms, and their weighted sums in double precision."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from discreet.double_sums import weighted_sums

# Values whose squares are summed in single precision; these sums are added in double precision. Whatever the order, the
# norm of n values is off by at most n/2 + 1 units of 2^-24: 7.7e-6, less than the 1e-5 that `clipping.ROUNDING` leaves.
NORM_PIECE = 256
SMALLEST_FACTOR = 1e-75  # smaller doubles count as zero


class Gradient(Protocol):
    """The gradient of one parameter for each of n examples."""

    def squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Return Σ_e weights[c, e]·gradient of example (c, e), for weights of c clients with e examples each.

        Products and sums are in double precision.
        """

    def zero_nonfinite(self) -> "Gradient":
        """Return the gradients with zeros for NaN and infinity: such an example has weight 0, and 0·NaN is NaN."""


@dataclass(frozen=True)
class DenseGradient:
    """Gradients stored as they are, one row for each example."""

    value: Tensor

    def squared_norms(self) -> Tensor:
        rows = self.value.reshape(len(self.value), -1)
        whole = rows.shape[1] // NORM_PIECE * NORM_PIECE
        pieces = rows[:, :whole].reshape(len(rows), whole // NORM_PIECE, NORM_PIECE)
        dtype = torch.promote_types(rows.dtype, torch.float32)  # a norm in 16 bits would be off by almost 1 %
        squares: Tensor = torch.linalg.vector_norm(pieces, dim=2, dtype=dtype).double().square().sum(dim=1)
        rest: Tensor = torch.linalg.vector_norm(rows[:, whole:], dim=1, dtype=dtype).double().square()
        return squares + rest

    def weighted_sum(self, weights: Tensor) -> Tensor:
        rows = self.value.reshape(*weights.shape, -1)
        return weighted_sums(rows, weights.double()).reshape(len(weights), *self.value.shape[1:])

    def zero_nonfinite(self) -> "DenseGradient":
        return DenseGradient(zero_nonfinite(self.value))


@dataclass(frozen=True)
class OuterProductGradient:
    """Outer products of two vectors for each example, which are never formed: the norm is the product of norms.

    All is in double precision: in single precision the squares of a small factor would vanish, and a large other factor
    would escape the clip; and so would a small factor whose product with its weight has few digits.
    """

    left: Tensor
    right: Tensor

    def squared_norms(self) -> Tensor:
        left, right = (torch.linalg.vector_norm(to_doubles(side), dim=1) for side in (self.left, self.right))
        both: Tensor = (left * right).square()
        return both

    def weighted_sum(self, weights: Tensor) -> Tensor:
        left = to_doubles(self.left).reshape(*weights.shape, -1) * weights.double()[..., None]
        return left.transpose(1, 2) @ to_doubles(self.right).reshape(*weights.shape, -1)

    def zero_nonfinite(self) -> "OuterProductGradient":
        return OuterProductGradient(zero_nonfinite(self.left), zero_nonfinite(self.right))


def to_doubles(factors: Tensor) -> Tensor:
    """Return factors of products in double precision, without doubles whose squares or products would lose digits."""
    doubles = factors.double()
    if factors.dtype != torch.float64:
        return doubles
    return doubles.masked_fill(doubles.abs() < SMALLEST_FACTOR, 0.0)


def zero_nonfinite(value: Tensor) -> Tensor:
    """Return the tensor with zeros for NaN and infinity."""
    return value.nan_to_num(0.0, 0.0, 0.0)
