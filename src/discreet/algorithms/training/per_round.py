"""A number that may differ by round: a list has one value for each round, and its last value stays in force."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from discreet.part import Count


def as_tuple(value: Any) -> Any:
    """Return a list or None as it is, and a single number as a tuple of one."""
    return value if value is None or isinstance(value, list | tuple) else (value,)


PerRound = Annotated[tuple[Count, ...], Field(min_length=1), BeforeValidator(as_tuple)]


def value_in_round(numbers: tuple[int, ...], round: int) -> int:
    """Return the value in force in this round."""
    return numbers[min(round, len(numbers) - 1)]


def sum_over_rounds(numbers: tuple[int, ...], rounds: range) -> int:
    """Sum the values over these rounds, in time that doesn't grow with the number of rounds."""
    named = range(rounds.start, min(rounds.stop, len(numbers)))
    return sum(numbers[round] for round in named) + numbers[-1] * (len(rounds) - len(named))
