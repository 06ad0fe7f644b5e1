"""Warnings before a run: promises that say little, and protection that isn't there."""

from collections.abc import Iterator, Sequence

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.engines.engine import MIN_SECURE_CLIENTS
from discreet.experiment.promise.promise_warnings import StatedPromise, promise_warnings
from discreet.privacy.wording import compact


def plan_warnings(
    algorithm: Algorithm, population: Population, promises: Sequence[StatedPromise], distinct: int | None
) -> Iterator[str]:
    """Yield each warning in one or two sentences.

    Args:
        promises: The guarantees of the plan; the first is the promised one.
        distinct: The number of examples, each counted once; None if only the owner of the data knows it.
    """
    if promises:
        yield from promise_warnings(population, promises, distinct)
        yield from _warn_amplification(algorithm, population, promises[0])
    yield from _warn_secure_sums(algorithm, population)
    yield from algorithm.trainer.plan_warnings(population)


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
