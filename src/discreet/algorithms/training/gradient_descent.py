"""Full-batch gradient descent on the client, a few iterations a round (Fu et al. 2021)."""

from dataclasses import replace
from typing import Literal, Self

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.exposure import Exposure, expose_update
from discreet.algorithms.training.gradient_rules import AnyGradientClip, AnyPerturbation, AnyRegulariser
from discreet.algorithms.training.gradient_step import step_learning_rate
from discreet.algorithms.training.local_step import LocalStep
from discreet.algorithms.training.per_round import PerRound, sum_over_rounds, value_in_round
from discreet.algorithms.training.round_batches import WholeBatches
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import LocalTrainer, Loss
from discreet.algorithms.training.work_advice import ITERATIONS, WorkAdvice
from discreet.params import Params
from discreet.part import Positive, part
from discreet.randomness.streams import Rows


@part
class GradientDescent(LocalTrainer):
    """`iterations` steps on all of a client's examples; a list has one value for each round, and the last stays.

    The schedule goes by iterations, counted from 0 over all rounds: η_k = (2/μ)/(k + γ) of Fu et al. is a learning rate
    of 2/μ with a harmonic schedule.
    """

    kind: Literal["gradient_descent"] = "gradient_descent"
    learning_rate: Positive
    iterations: PerRound
    gradient_clip: AnyGradientClip | None = None
    perturbation: AnyPerturbation | None = None
    regulariser: AnyRegulariser | None = None
    schedule: AnySchedule = Constant()

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        iterations = self._iterations(broadcast.round)
        rates = [step_learning_rate(self.learning_rate, self.schedule, k, broadcast) for k in iterations]
        return self._step.run_steps(loss, broadcast, WholeBatches(batches, len(rates)), rates)

    def for_moments(self, bound: float, noise_multiplier: float | None) -> "GradientDescent":
        return one_plain_step()

    def exposure(self, round: int) -> Exposure:
        """Bound updates by ζ·Ση_k over the round's iterations, in the norm of the gradient clip ζ; not if regularised.

        It holds for real numbers; rounding in the model's precision is left to the mechanism's clip. A longer round has
        a larger bound, and the noise scales with it, so rounds reveal alike.
        """
        factors = sum(map(self.schedule.factor, self._iterations(round)))
        norm, order = self._step.update_bound(self.learning_rate * factors)
        return expose_update(norm, order)

    def with_local_work(self, amount: int) -> Self:
        return replace(self, iterations=(amount,))

    def with_two_steps(self) -> Self:
        return replace(self, iterations=(2,))

    def model_copies(self, population: Population) -> float:
        """An example is assumed to need no more memory on its way through the network than the model."""
        return self._step.model_copies + max(population.examples)

    def work_advice(self) -> WorkAdvice:
        return WorkAdvice(value_in_round(self.iterations, 0), None, ITERATIONS, why="")

    @property
    def has_compiled_steps(self) -> bool:
        return True

    @property
    def _step(self) -> LocalStep:
        return LocalStep(self.perturbation, self.regulariser, self.gradient_clip)

    def _iterations(self, round: int) -> range:
        before = sum_over_rounds(self.iterations, range(round))
        return range(before, before + value_in_round(self.iterations, round))


def one_plain_step() -> GradientDescent:
    """Return one step of rate 1 on all examples of a client, without noise."""
    return GradientDescent(learning_rate=1.0, iterations=(1,))
