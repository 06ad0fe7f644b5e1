"""A block of clients' data, and the batches drawn from it.

All data lies flat on the device; a client is a range of it. A batch is a table of indices with a mask, so clients of
different sizes share a block without a copy of their data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from discreet.randomness import Streams


class Batch(NamedTuple):
    """Rows of examples, one row a client: `mask` says which cells hold one, `active` whose step this is at all."""

    inputs: Tensor
    targets: Tensor
    mask: Tensor
    active: Tensor


@dataclass(frozen=True)
class Batches:
    """The clients of a block: client i's examples are `sizes[i]` rows of the flat tensors from `starts[i]` on."""

    inputs: Tensor
    targets: Tensor
    starts: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def clients(self) -> int:
        return len(self.sizes)

    def shuffled(self, batch_size: int, steps: Sequence[int], streams: Streams) -> Iterator[Batch]:
        """`steps[i]` batches for client i: passes over its data, each in a new random order, the last batch shorter."""
        sizes, wanted = torch.tensor(self.sizes), torch.tensor(steps)
        batches = -(-sizes // batch_size)
        passes = int((-(-wanted // batches)).max())
        orders = torch.stack([streams.uniform(self.sizes).argsort(dim=1) for _ in range(passes)], dim=1)
        width = min(batch_size, max(self.sizes))
        for step in range(max(steps)):
            column = (step % batches)[:, None] * batch_size + torch.arange(width)
            mask = (column < sizes[:, None]) & (step < wanted)[:, None]
            number = (step // batches).clamp(max=passes - 1)
            chosen = orders[torch.arange(self.clients), number].gather(1, column.clamp(max=orders.shape[2] - 1))
            yield self._batch(chosen, mask, step < wanted)

    def poisson(self, rate: float, streams: Streams, width: int) -> Iterator[Batch]:
        """Each example by its own coin, in pieces of at most `width` examples a client.

        Nothing is cut off: as many pieces come as the largest draw needs, and none where nobody drew anything.
        """
        drawn = streams.uniform(self.sizes) < rate
        counts = drawn.sum(dim=1)
        client, example = drawn.nonzero(as_tuple=True)
        place = torch.arange(len(client)) - (counts.cumsum(0) - counts)[client]
        chosen = torch.zeros(self.clients, int(counts.max()), dtype=torch.int64)
        chosen[client, place] = example
        everyone = torch.ones(self.clients, dtype=torch.bool)
        for first in range(0, chosen.shape[1], width):
            piece = chosen[:, first : first + width]
            mask = first + torch.arange(piece.shape[1]) < counts[:, None]
            yield self._batch(piece, mask, everyone)

    def _batch(self, chosen: Tensor, mask: Tensor, active: Tensor) -> Batch:
        device = self.inputs.device
        index = (torch.where(mask, chosen, 0) + torch.tensor(self.starts)[:, None]).to(device)
        return Batch(self.inputs[index], self.targets[index], mask.to(device), active.to(device))
