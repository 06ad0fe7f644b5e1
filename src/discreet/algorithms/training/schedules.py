"""Learning rate schedules, as factors by k: the number of the round or, in gradient descent, of the iteration."""

from abc import abstractmethod
from typing import Annotated, Literal, Protocol, TypeAlias

from pydantic import Field

from discreet.contract import contract
from discreet.own_part import OwnPart
from discreet.part import NonNegative, Positive, Rate, part


@contract("schedule", is_postprocessing=True)
class Schedule(Protocol):
    """The contract of a schedule.

    Trainers bound an update by the same factors that they train with, so a schedule may change no guarantee as long as
    a factor depends on k alone, and is finite and not negative.
    """

    @abstractmethod
    def factor(self, k: int) -> float:
        """Return the factor on the learning rate in round or iteration k, starting at 0."""


@part
class Constant(Schedule):
    """A factor of 1."""

    kind: Literal["constant"] = "constant"

    def factor(self, k: int) -> float:
        return 1.0


@part
class Exponential(Schedule):
    """decay^k."""

    kind: Literal["exponential"] = "exponential"
    decay: Rate

    def factor(self, k: int) -> float:
        return float(self.decay**k)


@part
class Inverse(Schedule):
    """1/(1 + decay·k)."""

    kind: Literal["inverse"] = "inverse"
    decay: NonNegative

    def factor(self, k: int) -> float:
        return 1 / (1 + self.decay * k)


@part
class Harmonic(Schedule):
    """1/(k + gamma): η_k = (2/μ)/(k + γ) of Fu et al. 2021, with a learning rate of 2/μ."""

    kind: Literal["harmonic"] = "harmonic"
    gamma: Positive

    def factor(self, k: int) -> float:
        return 1 / (k + self.gamma)


AnySchedule: TypeAlias = Annotated[
    Constant | Exponential | Inverse | Harmonic, Field(discriminator="kind"), OwnPart(Schedule)
]
