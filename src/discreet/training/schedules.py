"""How a rate changes from round to round."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from discreet.part import NonNegative, Rate, part


@part
class Constant:
    kind: Literal["constant"] = "constant"

    def factor(self, round: int) -> float:
        return 1.0


@part
class Exponential:
    """Times `decay` after each round."""

    kind: Literal["exponential"] = "exponential"
    decay: Rate

    def factor(self, round: int) -> float:
        return float(self.decay**round)


@part
class Inverse:
    """1/(1 + decay·round)."""

    kind: Literal["inverse"] = "inverse"
    decay: NonNegative

    def factor(self, round: int) -> float:
        return 1 / (1 + self.decay * round)


Schedule: TypeAlias = Annotated[Constant | Exponential | Inverse, Field(discriminator="kind")]
