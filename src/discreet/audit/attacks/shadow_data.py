"""The data of a shadow run: the clients' own examples, some of them replaced by blanks, in slots of the same number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from discreet.algorithms.training.batches import Batch, Batches
from discreet.data.federation import Federation
from discreet.lazy_torch import Tensor, torch

AttackUnit: TypeAlias = Literal["example", "client"]


@dataclass(frozen=True)
class BlankBatches(Batches):
    """Batches in which one row of the data stands for no example: wherever it is drawn, the cell stays empty."""

    blank_row: int = -1

    def gather(self, index: Tensor, mask: Tensor, active: Tensor | None) -> Batch:
        return super().gather(index, mask & (index != self.blank_row), active)


@dataclass(frozen=True)
class BlankFederation(Federation):
    """Clients some of whose slots are blank. Their sizes stay as they are: those are public.

    Guarantee: a blank adds nothing to any sum, and counts as no example of a batch. It is what neighbouring data has
    under the relation `zero_out`.
    """

    blank_row: int = -1

    def block(self, clients: list[int] | tuple[int, ...]) -> BlankBatches:  # type: ignore[override]
        whole = super().block(clients)
        return BlankBatches(
            whole.inputs, whole.targets, whole.starts, whole.sizes, whole.order, blank_row=self.blank_row
        )


@dataclass(frozen=True)
class ShadowData:
    """The clients' data, from which the data of every shadow run is drawn.

    Attributes:
        data: The clients' examples.
        unit: What is present or blank as one: an example, or all examples of a client.
    """

    data: Federation
    unit: AttackUnit

    @cached_property
    def unit_of_slot(self) -> Tensor:
        """The number of the unit that each slot belongs to. Two slots with the same example are one unit."""
        if self.unit == "client":
            sizes = torch.tensor(self.data.sizes)
            return torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        units: Tensor = torch.unique(self._rows, return_inverse=True)[1]
        return units

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit_of_slot.max()) + 1

    def draw(self, present: Tensor) -> BlankFederation:
        """Return the clients with the examples of these units, and blanks for those of all others.

        Args:
            present: Whether each unit is present.
        """
        order = torch.where(present[self.unit_of_slot], self._rows, self._padded_data.blank_row)
        return replace(self._padded_data, order=order)

    @cached_property
    def _rows(self) -> Tensor:
        """The row of the data that is in each slot."""
        whole = self.data
        return torch.arange(len(whole.inputs)) if whole.order is None else whole.order

    @cached_property
    def _padded_data(self) -> BlankFederation:
        """The data with one more row, which is the blank."""
        inputs, targets = (
            torch.cat([values, torch.zeros_like(values[:1])]) for values in (self.data.inputs, self.data.targets)
        )
        sizes, most = self.data.sizes, self.data.max_multiplicity
        return BlankFederation(inputs, targets, sizes, most, self._rows, len(self.data.inputs))
