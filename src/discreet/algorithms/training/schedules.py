"""Learning rate schedules, as factors by k: the number of the round or, in gradient descent, of the iteration."""

import math
from abc import abstractmethod
from typing import Annotated, Literal, Protocol, TypeAlias

from pydantic import Field

from discreet.contract import contract
from discreet.own_part import OwnPart
from discreet.part import Count, NonNegative, Positive, Rate, part


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


@part
class StepDecay(Schedule):
    """decay^⌊k/every⌋: the factor is multiplied by `decay` after each `every` rounds."""

    kind: Literal["step"] = "step"
    every: Count
    decay: Rate

    def factor(self, k: int) -> float:
        return float(self.decay ** (k // self.every))


@part
class Cosine(Schedule):
    """Half a cosine wave, from 1 at k = 0 down to `lowest` at k = `length`, where it stays (Loshchilov & Hutter 2017).

    `length` is usually the number of rounds. `lowest` is above 0: a round with a learning rate of 0 would spend ε and
    change nothing.
    """

    kind: Literal["cosine"] = "cosine"
    length: Count
    lowest: Rate = 0.01

    def factor(self, k: int) -> float:
        above = (1 + math.cos(math.pi * min(k, self.length) / self.length)) / 2
        return self.lowest + (1 - self.lowest) * above


AnySchedule: TypeAlias = Annotated[
    Constant | Exponential | Inverse | Harmonic | StepDecay | Cosine, Field(discriminator="kind"), OwnPart(Schedule)
]
