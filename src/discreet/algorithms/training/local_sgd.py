"""Plain local SGD over shuffled batches."""

from dataclasses import replace
from typing import Literal, Self

from torch import Tensor

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.gradient_rules import AnyGradientClip, AnyPerturbation, AnyRegulariser
from discreet.algorithms.training.gradient_step import round_learning_rate
from discreet.algorithms.training.local_step import LocalStep
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import Loss, UpdateSums
from discreet.errors import InvalidInput
from discreet.params import Params
from discreet.part import Count, NonNegative, Positive, part
from discreet.privacy.events import Event, Noise
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows


@part
class LocalSgd:
    """`epochs` passes over a client's data, or the same number of `steps` for every client.

    The schedule goes by rounds. Options: a gradient clip, a perturbation (SAM) and a regulariser.
    """

    kind: Literal["local_sgd"] = "local_sgd"
    learning_rate: Positive
    batch_size: Count
    epochs: Count | None = None
    steps: Count | None = None
    momentum: NonNegative = 0.0
    weight_decay: NonNegative = 0.0
    gradient_clip: AnyGradientClip | None = None
    perturbation: AnyPerturbation | None = None
    regulariser: AnyRegulariser | None = None
    schedule: AnySchedule = Constant()

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            raise InvalidInput("Local SGD needs either epochs or steps.", fix="Give one, leave out the other.")

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        rate = round_learning_rate(self.learning_rate, self.schedule, broadcast)
        drawn = batches.draw_shuffled(self.batch_size, self._steps(batches), rows.for_purpose(Purpose.BATCHES).open())
        return self._step.run_steps(loss, broadcast, batches.clients, ((batch, rate) for batch in drawn))

    def for_population(self, population: Population) -> Self:
        return self

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return self

    def training_event(self, population: Population, rounds: range) -> Event | None:
        return None

    def max_update_norm(self, round: int) -> float | None:
        """Return ζ·steps·η with a gradient clip ζ, in the clip's norm (L2 or L1).

        None without a clip, with momentum, weight decay or a regulariser, and with epochs, whose steps differ by
        client. It holds for real numbers; rounding in the model's precision is left to the mechanism's clip.
        """
        if self.steps is None:
            return None
        return self._step.max_update_norm(self.steps * self.learning_rate * self.schedule.factor(round))

    def check_model(self, loss: Loss, params: Params, inputs: Tensor) -> None:
        return

    @property
    def has_uneven_rounds(self) -> bool:
        return False

    def with_two_steps(self) -> Self:
        return replace(self, steps=2, epochs=None)

    def model_copies(self, population: Population) -> float:
        return self._step.model_copies

    def examples_per_step(self, population: Population) -> tuple[float, ...]:
        return population.examples

    def example_sensitivity(self, round: int) -> float | None:
        return None

    def example_event(self, noise: Noise, population: Population, rounds: range) -> Event | None:
        return None

    def update_sums(self, round: int) -> UpdateSums:
        return UpdateSums()

    @property
    def _step(self) -> LocalStep:
        return LocalStep(self.perturbation, self.regulariser, self.gradient_clip, self.momentum, self.weight_decay)

    def _steps(self, batches: Batches) -> list[int]:
        if self.steps is not None:
            return [self.steps] * batches.clients
        return [(self.epochs or 1) * -(-size // self.batch_size) for size in batches.sizes]
