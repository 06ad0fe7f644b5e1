"""The data of a block of clients, and the batches drawn from it.

All data is on the device, and a client is a range of indices. A batch is a table of indices with a mask, so clients of
different sizes share a block without a copy of their data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from discreet.algorithms.input_scale import InputScale
from discreet.algorithms.training.compiled_step import steps_are_compiled
from discreet.lazy_torch import Tensor, torch
from discreet.randomness.streams import Streams
from discreet.round_clock import NO_CLOCK, Clock
from discreet.round_phases import Phase

if TYPE_CHECKING:
    from discreet.algorithms.training.round_batches import RoundBatches


class Batch(NamedTuple):
    """Examples in rows, one row for each client.

    Attributes:
        inputs: The inputs.
        targets: The targets.
        mask: Which cells hold an example.
        active: Which clients take this step; None: all.
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor
    active: Tensor | None


@dataclass(frozen=True)
class Batches:
    """The data of a block: client i's examples are the `sizes[i]` from `starts[i]` on in `order`.

    `order` lists rows of the tensors, on the CPU; without it, the rows are in that order themselves. With an
    `input_scale`, batches are standardised as they are drawn.
    """

    inputs: Tensor
    targets: Tensor
    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    order: Tensor | None = None
    input_scale: InputScale | None = None
    clock: Clock = field(default=NO_CLOCK, repr=False, compare=False)

    @property
    def clients(self) -> int:
        """Number of clients in the block."""
        return len(self.sizes)

    def select(self, client: int) -> Batches:
        """Return the data of one client of the block."""
        return replace(self, starts=self.starts[client : client + 1], sizes=self.sizes[client : client + 1])

    def draw_shuffled(self, batch_size: int, steps: Sequence[int], streams: Streams) -> RoundBatches:
        """Draw `steps[i]` batches for client i: passes over its data in new random orders, whose last batch is shorter.

        All indices go to the device at once: with a copy in every step the device would wait for the CPU.
        """
        from discreet.algorithms.training.round_batches import ShuffledBatches  # which is made of these batches

        with self.clock.phase(Phase.DATA):
            width = min(batch_size, round_up_width(max(self.sizes)) if self.has_few_widths else max(self.sizes))
            plan = _plan_shuffle(self.sizes, tuple(steps), batch_size, width, self._device)
            orders = torch.stack([streams.uniform(self.sizes).argsort(dim=1) for _ in range(plan.passes)])
            client = torch.arange(self.clients)[:, None]
            places = orders[plan.turn, client, plan.column] + torch.tensor(self.starts)[:, None]
            index = move_without_waiting(places if self.order is None else self.order[places], self._device)
        return ShuffledBatches(self, index, plan)

    def draw_poisson(self, rate: float | Tensor, streams: Streams, width: int) -> Iterator[Batch]:
        """Draw each example independently at `rate`, in pieces of at most `width` examples of a client.

        No example is dropped: there are as many pieces as the largest draw needs, and none if no example was drawn.
        Pieces have equal widths, on a GPU one of a few, so that CUDA graphs can be reused.
        """
        with self.clock.phase(Phase.DATA):
            drawn = streams.uniform(self.sizes) < (rate[:, None] if isinstance(rate, torch.Tensor) else rate)
            counts = drawn.sum(dim=1)
            client, example = drawn.nonzero(as_tuple=True)
            place = torch.arange(len(client)) - (counts.cumsum(0) - counts)[client]
            most = int(counts.max())
            piece_width = -(-most // max(1, -(-most // width)))
            if self.has_few_widths:
                piece_width = round_up_width(piece_width)
            chosen = torch.zeros(self.clients, -(-most // max(1, piece_width)) * piece_width, dtype=torch.int64)
            chosen[client, place] = example
        for first in range(0, chosen.shape[1], max(1, piece_width)):
            mask = first + torch.arange(piece_width) < counts[:, None]
            # padding repeats a drawn example: one that was not drawn is never read
            piece = torch.where(mask, chosen[:, first : first + piece_width], chosen[:, :1])
            yield self.gather(self._index(piece), move_without_waiting(mask, self._device), None)

    def full_batch(self) -> Batch:
        """Return all examples of every client in one batch, padded to the largest client."""
        width = max(self.sizes)
        column = torch.arange(round_up_width(width) if self.has_few_widths else width)
        mask = column < torch.tensor(self.sizes)[:, None]
        index = self._index(torch.where(mask, column, 0))
        return self.gather(index, move_without_waiting(mask, self._device), None)

    @property
    def has_few_widths(self) -> bool:
        """Whether batches are padded to one of a few widths, so that recorded and compiled steps can be used again."""
        return self._device.type == "cuda" or steps_are_compiled()

    @property
    def first_example(self) -> tuple[Tensor, Tensor]:
        """One example of the first client, as training sees it."""
        row = self.starts[0] if self.order is None else int(self.order[self.starts[0]])
        return self._standardise(self.inputs[row : row + 1], self.targets[row : row + 1])

    @property
    def _device(self) -> torch.device:
        return self.inputs.device

    def _index(self, chosen: Tensor) -> Tensor:
        """Return the rows of the data that hold the chosen examples of each client."""
        place = chosen + torch.tensor(self.starts)[:, None]
        return move_without_waiting(place if self.order is None else self.order[place], self._device)

    def gather(self, index: Tensor, mask: Tensor, active: Tensor | None) -> Batch:
        """Return the batch of these rows of the data, standardised."""
        with self.clock.phase(Phase.DATA):
            return Batch(*self._standardise(self.inputs[index], self.targets[index]), mask, active)

    def _standardise(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        if self.input_scale is None:
            return inputs, targets
        return self.input_scale.scale_inputs(inputs), self.input_scale.scale_targets(targets)


def move_without_waiting(value: Tensor, device: torch.device) -> Tensor:
    """Move a tensor from the host to a device. torch would wait for a GPU unless the tensor is in pinned memory."""
    return value.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else value.to(device)


def round_up_width(width: int) -> int:
    """Round up to one of about eight widths between a number and its double."""
    step = max(8, 1 << max(0, width.bit_length() - 4))
    return -(-width // step) * step


class ShufflePlan(NamedTuple):
    """Which cells of each step's batch hold an example, and the example's place in the order of its pass."""

    passes: int
    turn: Tensor
    column: Tensor
    mask: Tensor
    active: Tensor
    whole: list[bool]


@lru_cache(maxsize=16)
def _plan_shuffle(
    sizes: tuple[int, ...], steps: tuple[int, ...], batch_size: int, width: int, device: torch.device
) -> ShufflePlan:
    """Plan shuffled batches before an order is drawn: equal in every round for clients of these sizes."""
    held, wanted, number = torch.tensor(sizes), torch.tensor(steps), torch.arange(max(steps))[:, None]
    batches = -(-held // batch_size)
    passes = int((-(-wanted // batches)).max())
    active = number < wanted
    column = (number % batches)[:, :, None] * batch_size + torch.arange(width)
    mask = (column < held[:, None]) & active[:, :, None]
    turn = (number // batches).clamp(max=passes - 1)[:, :, None]
    column = torch.where(mask, column, 0)
    return ShufflePlan(passes, turn, column, mask.to(device), active.to(device), active.all(dim=1).tolist())
