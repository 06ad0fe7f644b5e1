"""Plain local SGD over shuffled batches."""

from dataclasses import replace
from typing import Literal, Self

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.exposure import Exposure, expose_update
from discreet.algorithms.training.gradient_descent import GradientDescent, one_plain_step
from discreet.algorithms.training.gradient_rules import AnyGradientClip, AnyPerturbation, AnyRegulariser
from discreet.algorithms.training.gradient_step import round_learning_rate
from discreet.algorithms.training.local_step import LocalStep
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import LocalTrainer, Loss
from discreet.algorithms.training.work_advice import EPOCHS, STEPS, WorkAdvice
from discreet.errors import InvalidInput
from discreet.params import Params
from discreet.part import Count, NonNegative, Positive, part
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows


@part
class LocalSgd(LocalTrainer):
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
        rate, steps = round_learning_rate(self.learning_rate, self.schedule, broadcast), self._steps(batches)
        drawn = batches.draw_shuffled(self.batch_size, steps, rows.for_purpose(Purpose.BATCHES).open())
        return self._step.run_steps(loss, broadcast, drawn, [rate] * max(steps))

    def for_moments(self, bound: float, noise_multiplier: float | None) -> GradientDescent:
        return one_plain_step()

    def exposure(self, round: int) -> Exposure:
        """Bound updates by ζ·steps·η with a gradient clip ζ, in the clip's norm (L2 or L1).

        There is no bound without a clip, with momentum, weight decay or a regulariser, and with epochs, whose steps
        differ by client. It holds for real numbers; rounding in the model's precision is left to the mechanism's clip.
        """
        rates = None if self.steps is None else self.steps * self.learning_rate * self.schedule.factor(round)
        norm, order = (None, None) if rates is None else self._step.update_bound(rates)
        return expose_update(norm, order)

    def with_local_work(self, amount: int) -> Self:
        return replace(self, epochs=amount) if self.steps is None else replace(self, steps=amount)

    def with_two_steps(self) -> Self:
        return replace(self, steps=2, epochs=None)

    def model_copies(self, population: Population) -> float:
        return self._step.model_copies

    def work_advice(self) -> WorkAdvice:
        return WorkAdvice(self.steps or self.epochs or 1, None, STEPS if self.steps else EPOCHS, why="")

    @property
    def has_compiled_steps(self) -> bool:
        return True

    @property
    def _step(self) -> LocalStep:
        return LocalStep(self.perturbation, self.regulariser, self.gradient_clip, self.momentum, self.weight_decay)

    def _steps(self, batches: Batches) -> list[int]:
        if self.steps is not None:
            return [self.steps] * batches.clients
        return [(self.epochs or 1) * -(-size // self.batch_size) for size in batches.sizes]
