"""Options that several `discreet tradeoff` commands share; each command sets its own default."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import click
from typer import Option

from discreet.cli.options import COUNT, POSITIVE, PROBABILITY, RATE, Number
from discreet.part import Index, Moderate, Multiplier


class NumberList(click.ParamType):  # type: ignore[type-arg]  # generic only from click 8.5 on
    """Numbers of one kind separated by commas, such as 10,25,50; sorted, each of them once."""

    def __init__(self, name: str, number: Number) -> None:
        self.name = name
        self.number = number

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if not isinstance(value, str):
            return tuple(value)
        return tuple(sorted({self.number.convert(text, param, ctx) for text in value.split(",")}))


COUNTS, POSITIVES = NumberList("counts", COUNT), NumberList("numbers", POSITIVE)
SCALE, AMOUNT, INDEX = Number("scale", Multiplier), Number("amount", Moderate), Number("number", Index)


def number_option(kind: click.ParamType, metavar: str, text: str, *names: str, **settings: Any) -> Any:  # type: ignore[type-arg]
    """Build an option that holds a number; the help shows its default."""
    return Option(*names, click_type=kind, metavar=metavar, help=text, **settings)


Delta: TypeAlias = Annotated[float, number_option(PROBABILITY, "D", "Delta of the (epsilon, delta) guarantee.")]
Clients: TypeAlias = Annotated[int, number_option(COUNT, "N", "Number of clients.")]
ClientCounts: TypeAlias = Annotated[
    Sequence[int], number_option(COUNTS, "N,...", "Numbers of clients to compare, separated by commas.")
]
Cohort: TypeAlias = Annotated[int, number_option(COUNT, "M", "Clients that join a round.")]
Rounds: TypeAlias = Annotated[int, number_option(COUNT, "T", "Number of rounds.")]
Epochs: TypeAlias = Annotated[int, number_option(COUNT, "T", "Epochs of all rounds together.")]
LocalSteps: TypeAlias = Annotated[int, number_option(COUNT, "K", "Local steps of a client in each round.")]
Examples: TypeAlias = Annotated[int, number_option(COUNT, "N", "Training examples of each client.")]
BatchSize: TypeAlias = Annotated[int, number_option(COUNT, "B", "Expected examples in a batch.")]
Dimension: TypeAlias = Annotated[int, number_option(COUNT, "P", "Number of model parameters.")]
TotalEpsilon: TypeAlias = Annotated[float, number_option(SCALE, "E", "Epsilon of all rounds together.")]
GradientClip: TypeAlias = Annotated[float, number_option(SCALE, "C", "Largest norm of a clipped gradient.", "--clip")]
UpdateClip: TypeAlias = Annotated[float, number_option(SCALE, "C", "Largest norm of a clipped update.", "--clip")]
LearningRate: TypeAlias = Annotated[float, number_option(SCALE, "A", "Learning rate of local steps.")]
Lipschitz: TypeAlias = Annotated[
    float, number_option(SCALE, "B", "Lipschitz constant of the loss: no gradient is longer.")
]
SamplingRate: TypeAlias = Annotated[
    float, number_option(RATE, "Q", "Rate at which each step samples a client's examples.", show_default="1/11")
]
Smoothness: TypeAlias = Annotated[float, number_option(SCALE, "L", "Smoothness constant of the losses.")]
Convexity: TypeAlias = Annotated[float, number_option(SCALE, "M", "Strong convexity constant of the loss.")]
