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

    def fitted(self, population: Population) -> Self:
        """The same with the numbers that follow from how much data clients have."""

    def with_noise(self, noise_multiplier: float) -> Self:
        """The same with this noise, where none was chosen yet."""

    def event(self, population: Population, rounds: range) -> Event | None:
        """What these rounds reveal of one example to whoever sees a client's updates; None: it is not protected."""

    def bound(self, round: int) -> float | None:
        """The norm that no update of this round exceeds by its making; None where there is none."""

    @property
    def changes(self) -> bool:
        """Whether rounds differ in what they reveal."""

    def brief(self) -> Self:
        """The same in two steps: enough to see what memory it takes."""

    def copies(self, population: Population) -> float:
        """About how many model-sized tensors one client needs at once: what bounds a block."""
