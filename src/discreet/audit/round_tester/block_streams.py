"""Random streams for many repetitions of a round at once: one stream for each purpose, one row for each client.

A run has a generator for each client, which takes longer to set up than a small round takes to play. Here a purpose of
a whole block has one generator, whose numbers are dealt to the rows. Rows are independent, as those of a run are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from discreet.lazy_torch import Tensor, torch
from discreet.params import Params
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import SimulatedRows, SimulatedStreams


@dataclass(frozen=True)
class BlockRows:
    """Streams of a block of clients, which may be the same client in many repetitions.

    Attributes:
        source: The block's own stream, that of a single client.
        clients: The number of each row's client, from which settings that differ by client are read.
    """

    source: SimulatedRows
    clients: tuple[int, ...]

    def for_purpose(self, purpose: Purpose, *numbers: int | str) -> BlockRows:
        return replace(self, source=self.source.for_purpose(purpose, *numbers))

    def open(self) -> BlockStreams:
        return BlockStreams(self.source.open(), len(self.clients))


@dataclass(frozen=True)
class BlockStreams:
    """Open streams of a block."""

    source: SimulatedStreams
    rows: int

    def normal(self, like: Params) -> Params:
        return self._draw(like, self.source.normal)

    def laplace(self, like: Params) -> Params:
        return self._draw(like, self.source.laplace)

    def skellam(self, like: Params, variance: float) -> Params:
        return self._draw(like, lambda block: self.source.skellam(block, variance))

    def discrete_gaussian(self, like: Params, variance: float) -> Params:
        return self._draw(like, lambda block: self.source.discrete_gaussian(block, variance))

    def uniform(self, sizes: Sequence[int]) -> Tensor:
        width = max(sizes)
        numbers = self.source.uniform([self.rows * width])[0].reshape(self.rows, width)
        beyond = torch.arange(width) >= torch.tensor(sizes)[:, None]
        return numbers.masked_fill_(beyond, 2.0)

    def _draw(self, like: Params, draw: Callable[[Params], Params]) -> Params:
        block = {name: value.expand(self.rows, *value.shape) for name, value in like.items()}
        return {name: value[0] for name, value in draw(block).items()}


class VectorisedRows:
    """The server's streams inside `torch.func.vmap` with different randomness: every repetition draws its own noise.

    They draw from torch's global generator, which the caller seeds.
    """

    clients: Sequence[int] = (-1,)

    def for_purpose(self, purpose: Purpose, *numbers: int | str) -> VectorisedRows:
        return self

    def open(self) -> VectorisedRows:
        return self

    def normal(self, like: Params) -> Params:
        return {
            name: torch.randn((1, *value.shape), dtype=value.dtype, device=value.device) for name, value in like.items()
        }

    def laplace(self, like: Params) -> Params:
        uniform = {
            name: torch.rand((2, *value.shape), dtype=torch.float64, device=value.device)
            for name, value in like.items()
        }
        return {
            name: (torch.log1p(-drawn[:1]) - torch.log1p(-drawn[1:])).to(like[name].dtype)
            for name, drawn in uniform.items()
        }

    def skellam(self, like: Params, variance: float) -> Params:
        raise NotImplementedError("integer noise is drawn by numpy, for one repetition at a time")

    def discrete_gaussian(self, like: Params, variance: float) -> Params:
        raise NotImplementedError("integer noise is drawn by numpy, for one repetition at a time")

    def uniform(self, sizes: Sequence[int]) -> Tensor:
        numbers = torch.rand((len(sizes), max(sizes)), dtype=torch.float64)
        return torch.where(torch.arange(max(sizes)) < torch.tensor(sizes)[:, None], numbers, 2.0)
