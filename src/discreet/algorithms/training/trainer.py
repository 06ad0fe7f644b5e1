"""The contract of local training, written for a block of clients at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self, TypeAlias

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.honest_upload import HonestUpload
from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.exposure import NOTHING_DECLARED, Exposure
from discreet.algorithms.training.work_advice import WorkAdvice
from discreet.contract import contract
from discreet.lazy_torch import Tensor
from discreet.params import Params
from discreet.randomness.streams import Rows

Loss: TypeAlias = Callable[[Params, Tensor, Tensor], Tensor]  # (model, inputs, targets) -> one loss an example


@contract("trainer", exposure=NOTHING_DECLARED)
class LocalTrainer(Protocol):
    """Computes the updates of a block of clients, and states what they reveal about one example.

    The training and what it exposes have no default. The other members fill in fields, estimate memory or describe a
    plan; no guarantee depends on them, and a field that stays open leaves training unable to run.
    """

    @abstractmethod
    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        """Return each client's update in a row of its own: its trained model minus the broadcast model.

        No client's row may depend on the data of another.

        Args:
            loss: A function of (model, inputs, targets) that returns one loss for each example. Multiply them by
                `batch.mask` before summing: the other cells of a batch are padding.
            broadcast: What the clients received: the model is `broadcast.params`.
            batches: The clients' data. `draw_shuffled`, `draw_poisson` and `full_batch` give padded batches with a
                mask, one row for each client. Where `active` is not None, a client that it leaves out takes no step.
            rows: Random streams, one for each client: all draws must come from them. `rows.open()` starts at their
                beginning, so open it once and go on drawing. For a second stream, such as one for noise, open
                `rows.for_purpose(Purpose.NOISE)`, with `Purpose` from `discreet.randomness.purposes`.
        """

    @abstractmethod
    def exposure(self, round: int) -> Exposure:
        """Return what an update of this round exposes of a client's data, by training alone.

        The fields that follow from the client sizes must be filled in, and clients must have equal settings: see
        `for_population` and `per_client.for_client`.
        """

    def for_population(self, population: Population) -> Self:
        """Return a copy with the fields that follow from the client sizes; by default none do."""
        return self

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        """Return a copy with this noise multiplier if none is chosen yet; a tuple has one for each client.

        By default nothing is open: the promise is then checked against the noise as it is, and refused if it is short.
        """
        return self

    def for_moments(self, bound: float, noise_multiplier: float | None) -> LocalTrainer | None:
        """Return one step of rate 1 on all examples of a client, with noise of its own if this trainer has such noise.

        Numbers are standardised by it where no mechanism adds noise. By default there is none, and they are not.

        Args:
            bound: The norm that the gradient of one example has at most.
            noise_multiplier: Noise of the sum over that bound. None if it is still to be computed.
        """
        return None

    def check_model(self, loss: Loss, params: Params, inputs: Tensor) -> None:
        """Refuse a model that can't be trained, before the first round. Only the shape of `inputs`, a batch, is used.

        By default any model will do. A trainer whose guarantee depends on the model must refuse others in `train` too.
        """
        return

    def with_two_steps(self) -> Self:
        """Return a copy that takes two steps, enough to measure memory; by default the whole training."""
        return self

    def with_local_work(self, amount: int) -> Self | None:
        """Return a copy that does this much in every round, in the unit of `work_advice`, for plans.

        None if it can't be changed, as by default.
        """
        return None

    def with_example_rate(self, rate: float) -> Self | None:
        """Return a copy with another share of a client's examples in each step, for plans.

        None if it can't be changed, as by default.
        """
        return None

    def example_clip(self) -> float | tuple[float, ...] | None:
        """Return the norm that longer gradients of single examples are shortened to; a tuple has one for each client.

        For diagnostics only. None, as by default, if single examples are not clipped, or all are scaled to the clip.
        """
        return None

    def model_copies(self, population: Population) -> float:
        """Estimate how many model-sized tensors one client needs at once, which limits the block size.

        By default a few, and one for each example of the largest client.
        """
        return 5.0 + max(population.examples)

    def examples_per_step(self, population: Population) -> Sequence[float]:
        """Return how many examples each client is expected to use in a step: its public weight by examples.

        By default all. Weights by examples are refused where a mechanism bounds clients.
        """
        return population.examples

    def honest_upload(self, round: int, examples: int) -> HonestUpload | None:
        """Return the largest norm of an update and the noise that training adds to it, of a client with equal settings.

        The server refuses longer uploads in clear if no mechanism bounds them. None, as by default, if unknown.

        Args:
            round: Number of the round, starting at 0.
            examples: The client's examples.
        """
        return None

    def longest_update(self, population: Population) -> float | None:
        """Return the norm of the mean client's first update if all that training clips is at the clip in one direction.

        For plans only. None if unknown.
        """
        return None

    def noise_to_signal(self, weights: Sequence[float], population: Population) -> float | None:
        """Return ‖noise‖ ÷ ‖signal‖ in one coordinate of the first round's sum, by training's own noise.

        For plans only, as in `noise_to_signal.py`. None if training adds no noise.

        Args:
            weights: Each client's weight in the sum.
            population: Public client sizes.
        """
        return None

    def work_advice(self) -> WorkAdvice | None:
        """Return how much a client does in the first round and how much it should, for plans; None if unknown."""
        return None

    @property
    def has_compiled_steps(self) -> bool:
        """Whether the setting `compile` does something for this training; by default nothing."""
        return False

    def plan_warnings(self, population: Population) -> Iterator[str]:
        """Yield what a user should know about these settings before a run, in sentences; by default nothing."""
        yield from ()
