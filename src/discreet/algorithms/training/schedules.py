"""How a rate changes with k: the rounds before this one or, in gradient descent, the iterations of all rounds."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from discreet.part import NonNegative, Positive, Rate, part


@part
class Constant:
    kind: Literal["constant"] = "constant"

    def factor(self, k: int) -> float:
        return 1.0


@part
class Exponential:
    """Times `decay` after each."""

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
    """1/(k + gamma): paper 003's η_k = (2/μ)/(k + γ), whose constant is the learning rate."""

    kind: Literal["harmonic"] = "harmonic"
    gamma: Positive

    def factor(self, k: int) -> float:
        return 1 / (k + self.gamma)


Schedule: TypeAlias = Annotated[Constant | Exponential | Inverse | Harmonic, Field(discriminator="kind")]
