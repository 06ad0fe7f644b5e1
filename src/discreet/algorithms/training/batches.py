"""A block of clients' data, and the batches drawn from it.

All data lies on the device; a client is a range of a list of it. A batch is a table of indices with a mask, so
clients of different sizes share a block without a copy of their data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from discreet.randomness.streams import Streams


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

    def draw_shuffled(self, batch_size: int, steps: Sequence[int], streams: Streams) -> Iterator[Batch]:
        """`steps[i]` batches for client i: passes over its data, each in a new random order, the last batch shorter.

        All indices go to the device at once: a copy in every step would make the device wait for the host.
        """
        plan = _plan_shuffle(self.sizes, tuple(steps), batch_size, self._device)
        orders = torch.stack([streams.uniform(self.sizes).argsort(dim=1) for _ in range(plan.passes)])
        client = torch.arange(self.clients)[:, None]
        places = orders[plan.turn, client, plan.column] + torch.tensor(self.starts)[:, None]
        index = (places if self.order is None else self.order[places]).to(self._device)
        for step, whole in enumerate(plan.whole):
            yield self._batch(index[step], plan.mask[step], None if whole else plan.active[step])

    def draw_poisson(self, rate: float | Tensor, streams: Streams, width: int) -> Iterator[Batch]:
        """Each example by its own coin, in pieces of at most `width` examples a client; clients may differ in `rate`.

        Nothing is cut off: as many pieces come as the largest draw needs, and none where nobody drew anything. They
        are alike in width, and on a GPU of few widths, so that steps can be recorded.
        """
        drawn = streams.uniform(self.sizes) < (rate[:, None] if isinstance(rate, Tensor) else rate)
        counts = drawn.sum(dim=1)
        client, example = drawn.nonzero(as_tuple=True)
        place = torch.arange(len(client)) - (counts.cumsum(0) - counts)[client]
        most = int(counts.max())
        each = -(-most // max(1, -(-most // width)))
        if self._device.type == "cuda":
            each = round_up_width(each)
        chosen = torch.zeros(self.clients, -(-most // max(1, each)) * each, dtype=torch.int64)
        chosen[client, place] = example
        for first in range(0, chosen.shape[1], max(1, each)):
            mask = first + torch.arange(each) < counts[:, None]
            piece = torch.where(mask, chosen[:, first : first + each], chosen[:, :1])  # never one that was not drawn
            yield self._batch(self._index(piece), mask.to(self._device), None)

    def full_batch(self) -> Batch:
        """All examples of every client, in the order they lie in, as wide as the largest client needs."""
        width = max(self.sizes)
        column = torch.arange(round_up_width(width) if self._device.type == "cuda" else width)
        mask = column < torch.tensor(self.sizes)[:, None]
        return self._batch(self._index(torch.where(mask, column, 0)), mask.to(self._device), None)

    @property
    def _device(self) -> torch.device:
        return self.inputs.device

    def _index(self, chosen: Tensor) -> Tensor:
        """Where in the data a client's examples lie."""
        place = chosen + torch.tensor(self.starts)[:, None]
        return (place if self.order is None else self.order[place]).to(self._device)

    def _batch(self, index: Tensor, mask: Tensor, active: Tensor | None) -> Batch:
        return Batch(self.inputs[index], self.targets[index], mask, active)


def round_up_width(width: int) -> int:
    """Up to a width of which there are about eight between a number and its double."""
    step = max(8, 1 << max(0, width.bit_length() - 4))
    return -(-width // step) * step


class _ShufflePlan(NamedTuple):
    """Which cells of each step's batches hold an example, and where in a pass's order it stands."""

    passes: int
    turn: Tensor
    column: Tensor
    mask: Tensor
    active: Tensor
    whole: list[bool]


@lru_cache(maxsize=16)
def _plan_shuffle(
    sizes: tuple[int, ...], steps: tuple[int, ...], batch_size: int, device: torch.device
) -> _ShufflePlan:
    """All that is known of shuffled batches before any order is drawn: the same in every round of like clients."""
    held, wanted, number = torch.tensor(sizes), torch.tensor(steps), torch.arange(max(steps))[:, None]
    batches = -(-held // batch_size)
    passes = int((-(-wanted // batches)).max())
    active = number < wanted
    column = (number % batches)[:, :, None] * batch_size + torch.arange(min(batch_size, max(sizes)))
    mask = (column < held[:, None]) & active[:, :, None]
    turn = (number // batches).clamp(max=passes - 1)[:, :, None]
    column = torch.where(mask, column, 0)
    return _ShufflePlan(passes, turn, column, mask.to(device), active.to(device), active.all(dim=1).tolist())
