"""A number that may differ by round: a list names one for each, and the last holds on."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from discreet.part import Count


def as_tuple(value: Any) -> Any:
    """`2` is short for `[2]`; none is none."""
    return value if value is None or isinstance(value, list | tuple) else (value,)


PerRound = Annotated[tuple[Count, ...], Field(min_length=1), BeforeValidator(as_tuple)]


def value_in_round(numbers: tuple[int, ...], round: int) -> int:
    return numbers[min(round, len(numbers) - 1)]


def sum_over_rounds(numbers: tuple[int, ...], rounds: range) -> int:
    """Their sum over these rounds, quickly for a million of them."""
    named = range(rounds.start, min(rounds.stop, len(numbers)))
    return sum(numbers[round] for round in named) + numbers[-1] * (len(rounds) - len(named))
