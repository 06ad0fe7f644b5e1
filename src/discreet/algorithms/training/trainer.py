"""The contract of local training, written for a block of clients at once."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self, TypeAlias

from torch import Tensor

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batches
from discreet.params import Params
from discreet.privacy.events import Event, Noise
from discreet.randomness.streams import Rows

Loss: TypeAlias = Callable[[Params, Tensor, Tensor], Tensor]  # (model, inputs, targets) -> one loss an example


NEGLIGIBLE = 1e-12  # a chance that a utility may be left to


class UpdateSums(NamedTuple):
    """An update is made up of `times` sums, and each example is in each of them with probability `rate`.

    It is added to one `passes` times; at least `parts` vectors are added up, whoever is in them.
    """

    times: int = 1
    rate: float = 1.0
    passes: int = 1
    parts: int = 1

    def vectors_per_sum(self, examples: int) -> int:
        """How many vectors one sum of a client with so many examples has, at most."""
        return max(self.passes * examples, self.parts)

    def max_examples(self, examples: int) -> int:
        """How many examples all sums have together, but for a chance of UNLIKELY (Bernstein's inequality)."""
        mean, log = self.times * examples * self.rate, -math.log(NEGLIGIBLE)
        likely = mean + log / 3 + math.sqrt(log * log / 9 + 2 * mean * log)
        return math.ceil(min(likely, self.times * examples))


class LocalTrainer(Protocol):
    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        """Each client's update, a row a client: its model after training, less the broadcast one."""

    def for_population(self, population: Population) -> Self:
        """The same with the numbers that follow from how much data clients have."""

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        """The same with this noise, where none was chosen yet; a list has one for each client."""

    def training_event(self, population: Population, rounds: range) -> Event | None:
        """What these rounds reveal of one example to whoever sees a client's updates; None: it is not protected.

        Asked of clients who are alike: `per_client.as_for` makes a trainer so.
        """

    def max_update_norm(self, round: int) -> float | None:
        """The norm that no update of this round exceeds by its making; None where there is none."""

    def check_model(self, loss: Loss, params: Params, inputs: Tensor) -> None:
        """Refuse a model that it can't train; `inputs` has the shape of a batch, and is not looked at."""

    @property
    def has_uneven_rounds(self) -> bool:
        """Whether rounds differ in what they reveal."""

    def with_two_steps(self) -> Self:
        """The same in two steps: enough to see what memory it takes."""

    def model_copies(self, population: Population) -> float:
        """About how many model-sized tensors one client needs at once: what bounds a block."""

    def examples_per_step(self, population: Population) -> Sequence[float]:
        """How many examples each client is expected to look at in a step: what it weighs by examples. Public."""

    def example_sensitivity(self, round: int) -> float | None:
        """How far one example can move a client's update of this round, by its making; None where nothing bounds it.

        Of an update that is made up of several sums: the root of their squares added up, so that noise of this size
        times a multiplier is that multiplier for each of them.
        """

    def example_event(self, noise: Noise, population: Population, rounds: range) -> Event | None:
        """What these rounds reveal of one example when noise of this kind, over its reach, is on every update.

        None where nothing bounds its reach.
        """

    def update_sums(self, round: int) -> UpdateSums:
        """What an update is made up of, where an example's reach is bounded: each sum is rounded apart on a lattice."""
