"""Plain local SGD: epochs or steps over shuffled batches."""

from dataclasses import replace
from functools import partial
from typing import Literal, Self

import torch
from torch import Tensor
from torch.func import grad, vmap

from discreet.batches import Batch, Batches
from discreet.broadcast import Broadcast
from discreet.errors import InvalidInput
from discreet.params import Params, repeated, subtract
from discreet.part import Count, NonNegative, Positive, part
from discreet.population import Population
from discreet.privacy.events import Event
from discreet.randomness import Rows
from discreet.training.descent import Descent, at_round
from discreet.training.module_loss import ModuleLoss
from discreet.training.recorded import Recordings
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
        rate = at_round(self.learning_rate, self.schedule, broadcast)
        recordings = loss.recordings if isinstance(loss, ModuleLoss) else Recordings()
        state: Descent | None = None
        for batch in batches.shuffled(self.batch_size, self._steps(batches), rows.at("batches").open()):
            if state is None:
                first = partial(self._first, loss, batches.clients)
                state = recordings.play((self, "first"), first, broadcast.params, rate, batch)
            else:
                state = recordings.play((self, "next"), partial(self._next, loss), state, rate, batch)
        assert state is not None
        return subtract(state.params, repeated(broadcast.params, batches.clients))

    def fitted(self, population: Population) -> Self:
        return self

    def with_noise(self, noise_multiplier: float) -> Self:
        return self

    def event(self, population: Population, rounds: range) -> Event | None:
        return None

    def bound(self, round: int) -> float | None:
        return None

    @property
    def changes(self) -> bool:
        return False

    def brief(self) -> Self:
        return replace(self, steps=2, epochs=None)

    def copies(self, population: Population) -> float:
        return 5.0  # model, gradient, velocity, update, and what a step makes new

    def _first(self, loss: Loss, clients: int, params: Params, rate: Tensor, batch: Batch) -> Descent:
        """All clients still share their weights, which one ordinary pass can use."""
        gradient = _gradients(loss, shared=True)(params, batch.inputs, batch.targets, batch.mask)
        return self._moved(Descent.start(repeated(params, clients), self.momentum), gradient, rate, batch)

    def _next(self, loss: Loss, state: Descent, rate: Tensor, batch: Batch) -> Descent:
        gradient = _gradients(loss, shared=False)(state.params, batch.inputs, batch.targets, batch.mask)
        return self._moved(state, gradient, rate, batch)

    def _moved(self, state: Descent, gradient: Params, rate: Tensor, batch: Batch) -> Descent:
        return state.step(
            gradient, rate=rate, momentum=self.momentum, weight_decay=self.weight_decay, active=batch.active
        )

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
