"""Warnings about numbers of a promise that say little: a large δ and a large ε."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from discreet.algorithms.population import Population
from discreet.privacy.release import Person, Unit, View
from discreet.privacy.wording import compact, round_up, unit_name

LARGE_EPSILON = 10.0  # an ε above this says little


class StatedPromise(NamedTuple):
    """A promise, as a guarantee or the planner states it."""

    unit: Unit
    view: View
    epsilon: float
    delta: float


def promise_warnings(population: Population, promises: Sequence[StatedPromise], distinct: int | None) -> Iterator[str]:
    """Yield a warning of a large δ, and one of a large ε.

    Args:
        population: The public client sizes.
        promises: What is promised or certified; the first is the promised one.
        distinct: The number of examples, each counted once; None if only the owner of the data knows it.
    """
    if promises:
        yield from delta_warnings(population, promises[0], distinct)
        yield from _warn_epsilon(promises)


def is_delta_large(population: Population, unit: Unit, delta: float, distinct: int | None) -> bool:
    """Whether δ is one over the number of units or more: publishing one unit in full would keep such a promise."""
    return delta * _count_units(population, unit, distinct) >= 1


def delta_warnings(population: Population, promise: StatedPromise, distinct: int | None) -> Iterator[str]:
    """Yield a warning of a δ of one over the number of units or more."""
    if is_delta_large(population, promise.unit, promise.delta, distinct):
        number = _count_units(population, promise.unit, distinct)
        is_exact = promise.unit == "client" or (promise.unit == "example" and distinct is not None)
        kind, more = unit_name(promise.unit), "" if is_exact else "at least "
        yield (
            f"delta = {compact(promise.delta)} is no less than 1/{number:,}, and there are {more}{number:,} "
            f"{'people' if kind == 'person' else f'{kind}s'}: publishing one of them in full would keep this promise. "
            f"Choose delta well below {compact(1 / number, 2)}."
        )


def _count_units(population: Population, unit: Unit, distinct: int | None) -> int:
    """Return how many units there are; a lower bound where only the owner of the data can count them."""
    if unit == "client":
        return population.clients
    examples = sum(population.examples)
    known = distinct if distinct is not None else math.ceil(examples / population.max_multiplicity)
    return math.ceil(known / unit.rows) if isinstance(unit, Person) else known


def _warn_epsilon(promises: Sequence[StatedPromise]) -> Iterator[str]:
    first = promises[0]
    most = max(promise.epsilon for promise in promises if (promise.unit, promise.view) == (first.unit, first.view))
    if most > LARGE_EPSILON:
        factor = f"{math.exp(most):,.0f}" if most < 16 else f"e^{compact(most, 3)}"
        yield (
            f"epsilon = {round_up(most)} is above {LARGE_EPSILON:g}: it bounds the odds by a factor of about "
            f"{factor}, which says little. Look at which attacks it still excludes, if any."
        )
