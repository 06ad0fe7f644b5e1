"""Options that several `discreet tradeoff` commands share; each command sets its own default."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, TypeAlias, TypeVar

import click

from discreet.cli.options import COUNT, POSITIVE, PROBABILITY, Number, number_option
from discreet.part import Index, Moderate, Multiplier

T = TypeVar("T")


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
LearningRate: TypeAlias = Annotated[float, number_option(SCALE, "A", "Learning rate of local steps.")]
Lipschitz: TypeAlias = Annotated[
    float, number_option(SCALE, "B", "Lipschitz constant of the loss: no gradient is longer.")
]
Smoothness: TypeAlias = Annotated[float, number_option(SCALE, "L", "Smoothness constant of the losses.")]


def build_record(record: type[T], options: Any, **others: Any) -> T:
    """Build a record of the theory from the options that have the names of its fields, and from `others`."""
    names = {field.name for field in fields(record)} - others.keys()  # type: ignore[arg-type]
    return record(**{name: getattr(options, name) for name in names}, **others)
