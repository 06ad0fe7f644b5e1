"""The batches of a round, gathered when they are asked for: each step of all clients, or all steps of one client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from discreet.algorithms.training.batches import Batch, Batches, ShufflePlan
from discreet.lazy_torch import Tensor


class RoundBatches(Protocol):
    """The batches of all steps of a round, for a block of clients."""

    @property
    def data(self) -> Batches:
        """The data that they are drawn from."""

    @property
    def width(self) -> int:
        """The most examples of a client in one batch."""

    def __iter__(self) -> Iterator[Batch]:
        """Return each step's batch, with a row for each client."""

    def of_client(self, client: int) -> Iterator[Batch | None]:
        """Return each step's batch with the row of one client, on a CPU without padding; None if it takes no step."""


@dataclass(frozen=True)
class ShuffledBatches:
    """Batches whose examples were drawn before.

    Attributes:
        data: The clients' data.
        index: The examples of each step and client, as rows of the data.
        plan: Which of them count.
    """

    data: Batches
    index: Tensor
    plan: ShufflePlan

    @property
    def width(self) -> int:
        return self.index.shape[2]

    def __iter__(self) -> Iterator[Batch]:
        for step, whole in enumerate(self.plan.whole):
            active = None if whole else self.plan.active[step]
            yield self.data.gather(self.index[step], self.plan.mask[step], active)

    def of_client(self, client: int) -> Iterator[Batch | None]:
        rows = slice(client, client + 1)
        for step, whole in enumerate(self.plan.whole):
            index, mask, active = self.index[step, rows], self.plan.mask[step, rows], self.plan.active[step, rows]
            if index.is_cuda:  # to look at the mask would wait for the device
                yield self.data.gather(index, mask, None if whole else active)
            elif bool(active):
                held = self.width if self.data.has_few_widths else int(mask.sum())  # padding comes last
                yield self.data.gather(index[:, :held], mask[:, :held], None) if held else None
            else:
                yield None


@dataclass(frozen=True)
class WholeBatches:
    """The same batch of all examples in each of some steps."""

    data: Batches
    steps: int

    @property
    def width(self) -> int:
        return max(self.data.sizes)

    def __iter__(self) -> Iterator[Batch]:
        whole = self.data.full_batch()
        return iter([whole] * self.steps)

    def of_client(self, client: int) -> Iterator[Batch | None]:
        own = self.data.select(client).full_batch()
        return iter([own] * self.steps)
