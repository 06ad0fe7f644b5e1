"""Warnings before a run: promises that say little, and protection that isn't there."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.engines.engine import MIN_SECURE_CLIENTS
from discreet.privacy.release import Person, Unit, View
from discreet.privacy.wording import compact, round_up, unit_name

LARGE_EPSILON = 10.0  # an ε above this says little


class StatedPromise(NamedTuple):
    """A promise, as a guarantee or the planner states it."""

    unit: Unit
    view: View
    epsilon: float
    delta: float


def plan_warnings(
    algorithm: Algorithm, population: Population, promises: Sequence[StatedPromise], distinct: int | None
) -> Iterator[str]:
    """Yield each warning in one or two sentences.

    Args:
        promises: The guarantees of the plan; the first is the promised one.
        distinct: The number of examples, each counted once; None if only the owner of the data knows it.
    """
    if promises:
        yield from _warn_delta(population, promises[0], distinct)
        yield from _warn_epsilon(promises)
        yield from _warn_amplification(algorithm, population, promises[0])
    yield from _warn_secure_sums(algorithm, population)
    yield from algorithm.trainer.plan_warnings(population)


def _warn_delta(population: Population, promise: StatedPromise, distinct: int | None) -> Iterator[str]:
    """Warn of a δ of one over the number of people or more: it allows publishing one person's data in full."""
    number = _count_units(population, promise, distinct)
    if promise.delta * number >= 1:
        is_exact = promise.unit == "client" or (promise.unit == "example" and distinct is not None)
        kind, more = unit_name(promise.unit), "" if is_exact else "at least "
        yield (
            f"delta = {compact(promise.delta)} is no less than 1/{number:,}, and there are {more}{number:,} "
            f"{'people' if kind == 'person' else f'{kind}s'}: publishing one of them in full would keep this promise. "
            f"Choose delta well below {compact(1 / number, 2)}."
        )


def _count_units(population: Population, promise: StatedPromise, distinct: int | None) -> int:
    """Return how many units the promise protects; a lower bound where only the owner of the data can count them."""
    if promise.unit == "client":
        return population.clients
    examples = sum(population.examples)
    known = distinct if distinct is not None else math.ceil(examples / population.max_multiplicity)
    return math.ceil(known / promise.unit.rows) if isinstance(promise.unit, Person) else known


def _warn_epsilon(promises: Sequence[StatedPromise]) -> Iterator[str]:
    first = promises[0]
    most = max(promise.epsilon for promise in promises if (promise.unit, promise.view) == (first.unit, first.view))
    if most > LARGE_EPSILON:
        factor = f"{math.exp(most):,.0f}" if most < 16 else f"e^{compact(most, 3)}"
        yield (
            f"epsilon = {round_up(most)} is above {LARGE_EPSILON:g}: it bounds the odds by a factor of about "
            f"{factor}, which says little. Look at which attacks it still excludes, if any."
        )


def _warn_amplification(algorithm: Algorithm, population: Population, promise: StatedPromise) -> Iterator[str]:
    """Warn that sampling amplifies nothing against an observer who sees which clients join."""
    sampling = algorithm.sampling
    rate = sampling.expected_cohort(population) / population.clients
    if sampling.public_cohort(population, 0) is not None or rate == 1:
        return
    if promise.view != "public":
        yield (
            f"Clients join at a rate of {compact(rate, 3)}, which amplifies nothing against the {promise.view}: it "
            "sees which clients join. Every round that a client may join is counted in full."
        )
    elif promise.unit == "client":
        yield (
            f"This assumes that nobody sees which clients join (a rate of {compact(rate, 3)}). The server sees it, so "
            "this guarantee doesn't hold against the server, and the list of joined clients must stay as secret as the "
            "data."
        )


def _warn_secure_sums(algorithm: Algorithm, population: Population) -> Iterator[str]:
    """Warn of cohorts too small for a secure sum: the secure engine refuses them, others would not notice."""
    fewest = algorithm.sampling.cohort_bounds(population)[0]
    if algorithm.aggregation.is_secure and fewest < MIN_SECURE_CLIENTS:
        yield (
            f"As few as {fewest} client{'' if fewest == 1 else 's'} may be in a round, and a secure sum needs "
            f"{MIN_SECURE_CLIENTS}: with two, each could subtract its own part. Let more clients join."
        )
