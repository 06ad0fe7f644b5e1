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


NEGLIGIBLE = 1e-12  # a probability of failure that costs utility only, never privacy


class UpdateSums(NamedTuple):
    """The sums that an update is made up of.

    Attributes:
        times: Number of sums.
        rate: Probability that an example is in a sum.
        passes: How often an example is added to a sum that it is in.
        parts: Vectors that are added up in a sum at least, whatever the examples.
    """

    times: int = 1
    rate: float = 1.0
    passes: int = 1
    parts: int = 1

    def vectors_per_sum(self, examples: int) -> int:
        """Return the most vectors in one sum of a client with this many examples."""
        return max(self.passes * examples, self.parts)

    def max_examples(self, examples: int) -> int:
        """Bound the examples in all sums together, up to a probability of NEGLIGIBLE (Bernstein's inequality)."""
        mean, log = self.times * examples * self.rate, -math.log(NEGLIGIBLE)
        likely = mean + log / 3 + math.sqrt(log * log / 9 + 2 * mean * log)
        return math.ceil(min(likely, self.times * examples))


class LocalTrainer(Protocol):
    """Computes the updates of a block of clients, and states what they reveal about one example."""

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        """Return each client's update in a row of its own: its trained model minus the broadcast model.

        Args:
            loss: Loss of a model on examples.
            broadcast: What the clients received.
            batches: The clients' data.
            rows: Random streams, one for each client.
        """

    def for_population(self, population: Population) -> Self:
        """Return a copy with the fields that follow from the client sizes."""

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        """Return a copy with this noise multiplier if none is chosen yet; a tuple has one for each client."""

    def training_event(self, population: Population, rounds: range) -> Event | None:
        """Return what a client's updates of these rounds reveal about one example, by the noise added in training.

        None if training adds no noise. Clients must have equal settings: see `per_client.for_client`.
        """

    def max_update_norm(self, round: int) -> float | None:
        """Return the norm that no update of this round exceeds, by construction; None if unbounded."""

    def check_model(self, loss: Loss, params: Params, inputs: Tensor) -> None:
        """Refuse a model that can't be trained. Only the shape of `inputs`, a batch, is used."""

    @property
    def has_uneven_rounds(self) -> bool:
        """Whether rounds differ in what they reveal."""

    def with_two_steps(self) -> Self:
        """Return a copy that takes two steps, enough to measure memory."""

    def model_copies(self, population: Population) -> float:
        """Estimate how many model-sized tensors one client needs at once, which limits the block size."""

    def examples_per_step(self, population: Population) -> Sequence[float]:
        """Return how many examples each client is expected to use in a step: its public weight by examples."""

    def example_sensitivity(self, round: int) -> float | None:
        """Return how far one example can move a client's update of this round, by construction; None if unbounded.

        For an update of several sums it is the root of the sum of squares: noise of z times this value on the update is
        noise of multiplier z on each sum.
        """

    def example_event(self, noise: Noise, population: Population, rounds: range) -> Event | None:
        """Return what these rounds reveal about one example if every update carries this noise.

        The noise is relative to `example_sensitivity`. None if that is unbounded.
        """

    def update_sums(self, round: int) -> UpdateSums:
        """Return the sums that an update is made up of; on a lattice each is rounded by itself."""
