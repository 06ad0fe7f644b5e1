"""Gradients that are sums of outer products over positions, Σ_t g_t a_tᵀ, such as a convolution's, never formed.

Norms come from the inner products of positions (Rochette et al. 2019, Li et al. 2022), and weighted sums from products
over examples and positions together. docs/notes/numerics.md shows that these norms bound what is summed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from discreet.algorithms.training.gradient_records import to_doubles, zero_nonfinite

UNIT = 2.0**-53
TERMS = 256  # outer products of several examples that are added up before the sum of each example is complete
CANCELLATION = 64  # an example is clipped as if it were at least this share of the lengths of its terms: L/64
CPU_VALUES, GPU_VALUES = 2**20, 2**26  # doubles that are formed at once
PASSES = 100  # multiplications that take as long as storing a value of a gradient and reading it for norm and sum
SMALLER = 4  # how many times as large as its factors a gradient must be
SLOWER = 1.5  # how many times as long the computation without it may take


@dataclass(frozen=True)
class PositionSumGradient:
    """Gradients Σ_t g_t a_tᵀ, stored as their factors.

    Attributes:
        outer: The g_t of each example. Axes: examples, positions, outputs.
        inputs: What the a_t are computed from, example by example.
        rows: Returns the a_t of some examples' inputs. Axes: examples, positions, values.
        shape: Shape of the parameter: outputs, and axes whose product is the number of values.
    """

    outer: Tensor
    inputs: Tensor
    rows: Callable[[Tensor], Tensor]
    shape: torch.Size

    def squared_norms(self) -> Tensor:
        """Return squares of numbers that are at least each gradient's norm, and L/64 (see CANCELLATION)."""
        values = self._positions * (self.shape[0] + self._row_length + 2 * self._positions)
        pieces = _split((self.outer, self.inputs), max(1, self._limit // values))
        return torch.cat(
            [_upper_norms(to_doubles(outer), to_doubles(self.rows(some))) for outer, some in pieces]
        ).square()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        outer = self.outer.reshape(*weights.shape, *self.outer.shape[1:])
        inputs = self.inputs.reshape(*weights.shape, *self.inputs.shape[1:])
        together = max(1, TERMS // self._positions)
        values = max(self.shape.numel(), together * self._positions * (self.shape[0] + self._row_length))
        clients = max(1, self._limit // values)
        examples = together * max(1, self._limit // (values * min(clients, len(weights))))
        blocks = _split((weights.double(), outer, inputs), clients)
        found = [self._sum_block(block, examples, together) for block in blocks]
        return torch.cat(found).reshape(-1, *self.shape)

    def zero_nonfinite(self) -> "PositionSumGradient":
        return PositionSumGradient(zero_nonfinite(self.outer), zero_nonfinite(self.inputs), self.rows, self.shape)

    @property
    def _positions(self) -> int:
        return self.outer.shape[1]

    @property
    def _row_length(self) -> int:
        return self.shape[1:].numel()

    @property
    def _limit(self) -> int:
        return GPU_VALUES if self.outer.is_cuda else CPU_VALUES

    def _sum_block(self, block: tuple[Tensor, ...], examples: int, together: int) -> Tensor:
        """Return the sums of some clients, so many examples at a time, of which so many are in one product.

        The block has their weights, outer gradients and inputs, whose first axes are clients and examples.
        """
        total: Tensor | None = None
        for weights, outer, inputs in _split(block, examples, dim=1):
            rows = to_doubles(self.rows(inputs.flatten(0, 1)))
            left = to_doubles(outer) * weights[..., None, None]
            part = _sum_groups(left, rows.reshape(*left.shape[:3], -1), together)
            total = part if total is None else total.add_(part)
        assert total is not None
        return total


def takes_less_as_factors(positions: int, outputs: int, values: int, inputs: int) -> bool:
    """Return whether gradients should stay factors: far smaller so, and about as fast. It depends on shapes alone.

    Args:
        positions: Positions of an example, such as the pixels of a convolution's output.
        outputs: Length of a g_t.
        values: Length of an a_t.
        inputs: Numbers that the a_t of an example are computed from.
    """
    formed = outputs * values
    products = positions * formed
    as_factors = 2 * (positions**2 * (outputs + values) + products)  # in double precision
    return formed > SMALLER * (positions * outputs + inputs) and as_factors <= SLOWER * (products + PASSES * formed)


def _upper_norms(left: Tensor, right: Tensor) -> Tensor:
    """Return the norm of each Σ_t g_t a_tᵀ, plus all that rounding may take of it, and at least L/64.

    ‖Σ_t g_t a_tᵀ‖² = Σ_{t,s} ⟨a_t, a_s⟩⟨g_t, g_s⟩, of which k roundings take at most kuL², where L = Σ_t ‖g_t‖‖a_t‖.
    """
    positions = left.shape[1]
    inner = (left @ left.transpose(1, 2)) * (right @ right.transpose(1, 2))
    lengths = (_row_norms(left) * _row_norms(right)).sum(dim=1)
    roundings = 2 * (left.shape[2] + right.shape[2] + positions**2) + 16
    norms = (inner.sum(dim=(1, 2)).clamp(min=0) + roundings * UNIT * lengths.square()).sqrt()
    # A product over several examples rounds by the lengths of their terms, so these need a bound too.
    return norms if 2 * positions > TERMS else torch.maximum(norms, lengths / CANCELLATION)


def _sum_groups(left: Tensor, right: Tensor, together: int) -> Tensor:
    """Return Σ_e Σ_t g_t a_tᵀ for each client: products over so many examples at a time, and then the sum of these."""
    clients, examples, positions, _ = left.shape
    whole = examples // together * together
    total: Tensor | None = None
    for first, last, count in ((0, whole, together), (whole, examples, examples - whole)):
        if last > first:
            rows, columns = (
                side[:, first:last].reshape(-1, count * positions, side.shape[3]) for side in (left, right)
            )
            products = rows.transpose(1, 2) @ columns
            part = products.reshape(clients, -1, *products.shape[1:]).sum(dim=1)
            total = part if total is None else total.add_(part)
    assert total is not None
    return total


def _split(tensors: tuple[Tensor, ...], size: int, dim: int = 0) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(torch.split(each, size, dim) for each in tensors), strict=True)


def _row_norms(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows, dim=2)
    return norms
