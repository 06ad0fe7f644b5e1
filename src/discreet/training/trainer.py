"""The contract of local training, written for a block of clients at once."""

from collections.abc import Callable
from typing import Protocol, Self, TypeAlias

from torch import Tensor

from discreet.batches import Batches
from discreet.broadcast import Broadcast
from discreet.params import Params
from discreet.population import Population
from discreet.privacy.events import Event
from discreet.randomness import Rows

Loss: TypeAlias = Callable[[Params, Tensor, Tensor], Tensor]  # (model, inputs, targets) -> one loss an example


class LocalTrainer(Protocol):
    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        """Each client's update, a row a client: its model after training, less the broadcast one."""

    def with_noise(self, noise_multiplier: float) -> Self:
        """The same with this noise, where none was chosen yet."""

    def event(self, population: Population) -> Event | None:
        """What one round reveals of one example to whoever sees a client's update; None when it is not protected."""

    def copies(self, population: Population) -> float:
        """About how many model-sized tensors one client needs at once: what bounds a block."""
