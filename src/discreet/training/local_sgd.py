"""Plain local SGD: epochs or steps over shuffled batches."""

from typing import Literal, Self

import torch
from torch import Tensor
from torch.func import grad, vmap

from discreet.batches import Batches
from discreet.broadcast import Broadcast
from discreet.errors import InvalidInput
from discreet.params import Params, repeated, subtract
from discreet.part import Count, NonNegative, Positive, part
from discreet.population import Population
from discreet.privacy.events import Event
from discreet.randomness import Rows
from discreet.training.descent import Descent
from discreet.training.schedules import Constant, Schedule
from discreet.training.trainer import Loss


@part
class LocalSgd:
    """`epochs` passes over the client's data, or `steps` batches of it, whoever has how much."""

    kind: Literal["local_sgd"] = "local_sgd"
    learning_rate: Positive
    batch_size: Count
    epochs: Count | None = None
    steps: Count | None = None
    momentum: NonNegative = 0.0
    weight_decay: NonNegative = 0.0
    schedule: Schedule = Constant()

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            raise InvalidInput(
                "Local SGD needs either epochs or steps, one of the two.", fix="Give one, leave out the other."
            )

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        gradients = _gradients(loss, shared=False)
        start = repeated(broadcast.params, batches.clients)
        state = Descent.start(start, self.momentum)
        rate = self.learning_rate * self.schedule.factor(broadcast.round)
        for number, batch in enumerate(
            batches.shuffled(self.batch_size, self._steps(batches), rows.at("batches").open())
        ):
            if number == 0:  # all clients still share their weights, which one ordinary pass can use
                found = _gradients(loss, shared=True)(broadcast.params, batch.inputs, batch.targets, batch.mask)
            else:
                found = gradients(state.params, batch.inputs, batch.targets, batch.mask)
            state = state.step(
                found, rate=rate, momentum=self.momentum, weight_decay=self.weight_decay, active=batch.active
            )
        return subtract(state.params, start)

    def with_noise(self, noise_multiplier: float) -> Self:
        return self

    def event(self, population: Population) -> Event | None:
        return None

    def copies(self, population: Population) -> float:
        return 5.0  # model, gradient, velocity, update, and what a step makes new

    def _steps(self, batches: Batches) -> list[int]:
        if self.steps is not None:
            return [self.steps] * batches.clients
        return [(self.epochs or 1) * -(-size // self.batch_size) for size in batches.sizes]


def _gradients(loss: Loss, *, shared: bool):  # type: ignore[no-untyped-def]
    """Each client's gradient of its mean loss over the cells that hold an example."""

    def mean(params: Params, inputs: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
        losses = loss(params, inputs, targets)
        return torch.where(mask, losses, 0).sum() / mask.sum().clamp(min=1)

    return vmap(grad(mean), in_dims=(None if shared else 0, 0, 0, 0), randomness="different")
