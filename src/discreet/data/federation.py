"""Who holds which data: all examples on one device, each client a list of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batches
from discreet.errors import InvalidInput


@dataclass(frozen=True)
class Federation:
    """The clients' examples: `order` lists them, one client after the other; without it they lie in that order.

    `sizes` are public, by declaration.
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
            raise InvalidInput("The inputs hold NaN or infinity.", fix="Fill or drop those examples first.")

    @cached_property
    def population(self) -> Population:
        return Population(examples=self.sizes, max_multiplicity=self.max_multiplicity)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return (0, *accumulate(self.sizes))[:-1]

    def block(self, clients: Sequence[int]) -> Batches:
        starts, sizes = tuple(self.starts[i] for i in clients), tuple(self.sizes[i] for i in clients)
        return Batches(self.inputs, self.targets, starts, sizes, self.order)

    def examples(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets at these places of the list of all clients' examples."""
        at = places if self.order is None else self.order[places]
        return self.inputs[at.to(self.inputs.device)], self.targets[at.to(self.inputs.device)]

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "Federation":
        inputs = self.inputs.to(device, dtype if self.inputs.is_floating_point() else None)
        targets = self.targets.to(device, dtype if self.targets.is_floating_point() else None)
        return Federation(inputs, targets, self.sizes, self.max_multiplicity, self.order)


def is_finite(values: Tensor) -> bool:
    """The extremes show NaN and infinity too, in a tenth of the time that a look at each number takes."""
    if not values.is_floating_point() or not values.numel():
        return True
    return bool(torch.isfinite(torch.stack(values.aminmax())).all())
