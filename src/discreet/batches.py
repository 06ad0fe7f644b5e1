"""A block of clients' data, and the batches drawn from it.

All data lies on the device; a client is a range of a list of it. A batch is a table of indices with a mask, so
clients of different sizes share a block without a copy of their data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from discreet.randomness import Streams


class Batch(NamedTuple):
    """Rows of examples, one row a client: `mask` says which cells hold one, `active` whose step this is."""

    inputs: Tensor
    targets: Tensor
    mask: Tensor
    active: Tensor | None


@dataclass(frozen=True)
class Batches:
    """The clients of a block: client i's examples are the `sizes[i]` from `starts[i]` on in `order`.

    `order` lists rows of the tensors, on the host; without it the rows themselves lie in that order.
    """

    inputs: Tensor
    targets: Tensor
    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    order: Tensor | None = None

    @property
    def clients(self) -> int:
        return len(self.sizes)

    def shuffled(self, batch_size: int, steps: Sequence[int], streams: Streams) -> Iterator[Batch]:
        """`steps[i]` batches for client i: passes over its data, each in a new random order, the last batch shorter.

        All indices go to the device at once: a copy in every step would make the device wait for the host.
        """
        sizes, wanted, number = torch.tensor(self.sizes), torch.tensor(steps), torch.arange(max(steps))[:, None]
        batches = -(-sizes // batch_size)
        passes = int((-(-wanted // batches)).max())
        orders = torch.stack([streams.uniform(self.sizes).argsort(dim=1) for _ in range(passes)])
        active = number < wanted
        column = (number % batches)[:, :, None] * batch_size + torch.arange(min(batch_size, max(self.sizes)))
        mask = (column < sizes[:, None]) & active[:, :, None]
        turn = (number // batches).clamp(max=passes - 1)
        chosen = orders[turn, torch.arange(self.clients)].gather(2, column.clamp(max=orders.shape[2] - 1))
        index, masks, actives = self._index(chosen, mask), mask.to(self._device), active.to(self._device)
        everyone = active.all(dim=1).tolist()
        for step, whole in enumerate(everyone):
            yield self._batch(index[step], masks[step], None if whole else actives[step])

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
        for first in range(0, chosen.shape[1], width):
            piece = chosen[:, first : first + width]
            mask = first + torch.arange(piece.shape[1]) < counts[:, None]
            yield self._batch(self._index(piece, mask), mask.to(self._device), None)

    @property
    def _device(self) -> torch.device:
        return self.inputs.device

    def _index(self, chosen: Tensor, mask: Tensor) -> Tensor:
        """Where in the data a client's examples lie; cells without one point at its first."""
        place = torch.where(mask, chosen, 0) + torch.tensor(self.starts)[:, None]
        return (place if self.order is None else self.order[place]).to(self._device)

    def _batch(self, index: Tensor, mask: Tensor, active: Tensor | None) -> Batch:
        return Batch(self.inputs[index], self.targets[index], mask, active)
