"""The examples of all clients on one device, and which client holds which of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batches
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch


@dataclass(frozen=True)
class Federation:
    """The examples of all clients.

    Attributes:
        inputs: All inputs, one row per example.
        targets: All targets, one row per example.
        sizes: Number of examples of each client. They are public by declaration.
        max_multiplicity: The largest number of clients that hold the same example.
        order: The rows of the first client's examples, then those of the second client's, and so on. None: the rows
            are in this order already.
    """

    inputs: Tensor
    targets: Tensor
    sizes: tuple[int, ...]
    max_multiplicity: int = 1
    order: Tensor | None = None

    def __post_init__(self) -> None:
        if not self.sizes:
            raise InvalidInput("A federation needs at least one client, and got none.")
        if empty := [i for i, size in enumerate(self.sizes) if size < 1]:
            raise InvalidInput(f"Every client needs an example, and client {empty[0]} has none.", fix="Leave it out.")
        held = len(self.inputs) if self.order is None else len(self.order)
        if len(self.inputs) != len(self.targets) or held != sum(self.sizes):
            raise InvalidInput(
                f"Inputs, targets and clients must count the same examples, and got {len(self.inputs)} inputs, "
                f"{len(self.targets)} targets and clients of {sum(self.sizes)} in all."
            )
        if not is_finite(self.inputs):
            raise InvalidInput("The inputs contain NaN or infinity.", fix="Fill or drop those examples first.")

    @cached_property
    def population(self) -> Population:
        """What is public about the clients: their sizes, and how often an example occurs among them."""
        return Population(examples=self.sizes, max_multiplicity=self.max_multiplicity)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The position of each client's first example in the list of all clients' examples."""
        return (0, *accumulate(self.sizes))[:-1]

    @cached_property
    def size_array(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The sizes, for work on many clients at once."""
        return np.array(self.sizes, dtype=np.int64)

    def block(self, clients: Sequence[int]) -> Batches:
        """Return the examples of a block of clients, for a local trainer to draw batches from."""
        starts, sizes = tuple(self.starts[i] for i in clients), tuple(self.sizes[i] for i in clients)
        return Batches(self.inputs, self.targets, starts, sizes, self.order)

    def examples_at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and targets at these positions in the list of all clients' examples."""
        rows = (positions if self.order is None else self.order[positions]).to(self.inputs.device)
        return self.inputs[rows], self.targets[rows]

    def move_to(self, device: torch.device, dtype: torch.dtype | None = None) -> Federation:
        """Return a copy on the device; `dtype` converts floating-point inputs and targets."""
        inputs = self.inputs.to(device, dtype if self.inputs.is_floating_point() else None)
        targets = self.targets.to(device, dtype if self.targets.is_floating_point() else None)
        return Federation(inputs, targets, self.sizes, self.max_multiplicity, self.order)


def is_finite(values: Tensor) -> bool:
    """Return whether no value is NaN or infinite. Looking at the extremes alone takes a tenth of the time."""
    if not values.is_floating_point() or not values.numel():
        return True
    return bool(torch.isfinite(torch.stack(values.aminmax())).all())
