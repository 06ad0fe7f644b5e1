"""Learning rate schedules, as factors by k: the number of the round or, in gradient descent, of the iteration."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from discreet.part import NonNegative, Positive, Rate, part


@part
class Constant:
    """A factor of 1."""

    kind: Literal["constant"] = "constant"

    def factor(self, k: int) -> float:
        return 1.0


@part
class Exponential:
    """decay^k."""

    kind: Literal["exponential"] = "exponential"
    decay: Rate

    def factor(self, k: int) -> float:
        return float(self.decay**k)


@part
class Inverse:
    """1/(1 + decay·k)."""

    kind: Literal["inverse"] = "inverse"
    decay: NonNegative

    def factor(self, k: int) -> float:
        return 1 / (1 + self.decay * k)


@part
class Harmonic:
    """1/(k + gamma): η_k = (2/μ)/(k + γ) of Fu et al. 2021, with a learning rate of 2/μ."""

    kind: Literal["harmonic"] = "harmonic"
    gamma: Positive

    def factor(self, k: int) -> float:
        return 1 / (k + self.gamma)


Schedule: TypeAlias = Annotated[Constant | Exponential | Inverse | Harmonic, Field(discriminator="kind")]
