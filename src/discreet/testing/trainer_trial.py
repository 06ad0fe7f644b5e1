"""Local training on synthetic data: the same clients again and again, with one example or one client replaced."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import LocalTrainer, Loss
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.isolation_check import fixed_randomness
from discreet.params import Params, flatten
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.testing.part_failure import report_errors, require


@dataclass(frozen=True)
class TrainerTrial:
    """Trains clients on synthetic data.

    Attributes:
        trainer: The trainer, with the fields that follow from the client sizes.
        loss: Loss of the model on examples.
        params: The model.
        clients: Numbers of the clients.
        sizes: Number of examples of each.
        inputs: All inputs, those of the first client first.
        targets: All targets.
    """

    trainer: LocalTrainer
    loss: Loss
    params: Params
    clients: tuple[int, ...]
    sizes: tuple[int, ...]
    inputs: Tensor
    targets: Tensor

    def train(self, round: int = 0, seed: int = 0, *, ambient: int = 0, first_alone: bool = False) -> Tensor:
        """Return the flat update of each client, or of the first if it trains alone."""
        count = 1 if first_alone else len(self.clients)
        batches = Batches(self.inputs, self.targets, self.starts[:count], self.sizes[:count])
        rows = RunKey.from_seed(seed).rows(round, b"", self.clients[:count], self.inputs.device)
        with report_errors("Training"), fixed_randomness(ambient, self.inputs.device), rows.seed_network():
            delta = self.trainer.train(
                self.loss, Broadcast(round, self.params, {}), batches, rows.for_purpose(Purpose.TRAIN)
            )
        shapes = {name: (count, *value.shape) for name, value in self.params.items()}
        require(
            {name: tuple(value.shape) for name, value in delta.items()} == shapes,
            "Training must return an update of every tensor of the model, one row for each client.",
        )
        return flatten(delta, leading=1).detach()

    @property
    def starts(self) -> tuple[int, ...]:
        """The place of each client's first example."""
        return tuple(sum(self.sizes[:client]) for client in range(len(self.sizes)))

    @property
    def has_real_inputs(self) -> bool:
        """Whether inputs are real numbers, so that they can be huge or NaN."""
        return self.inputs.is_floating_point()

    def with_examples(self, places: slice, values: Tensor) -> "TrainerTrial":
        """Return a copy with other inputs at these places."""
        inputs = self.inputs.clone()
        inputs[places] = values.to(inputs)
        return replace(self, inputs=inputs)

    def other_inputs(self, count: int) -> dict[str, Tensor]:
        """Return inputs to put in the place of others, by what they are."""
        shape, generator = (count, *self.inputs.shape[1:]), torch.Generator().manual_seed(99)
        if not self.has_real_inputs:
            return {"other": torch.randint(2, shape, generator=generator)}
        random = torch.randn(shape, generator=generator)
        return {"other": random, "huge": 1e4 * random, "NaN": torch.full(shape, torch.nan)}


def synthetic_examples(count: int, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return random examples of the shapes and types of a batch, whose values are not used.

    Whole numbers are 0 or 1 in inputs and 0 in targets, which every vocabulary and every set of classes has.
    """
    generator = torch.Generator().manual_seed(3)

    def draw(like: Tensor, most: int) -> Tensor:
        shape = (count, *like.shape[1:])
        if like.is_floating_point():
            return torch.randn(shape, generator=generator).to(like)
        return torch.randint(most, shape, generator=generator).to(like)

    return draw(inputs, 2), draw(targets, 1)


def smallest_clients(sizes: Sequence[int], clients: Sequence[int], count: int = 3) -> tuple[int, ...]:
    """Return the clients with the fewest examples, on whose data one example moves most."""
    return tuple(sorted(sorted(clients, key=lambda client: (sizes[client], client))[:count]))
