"""The cost of other promises for one experiment: the noise for all its rounds, or the rounds at today's noise."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal, part_noise_multiplier
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.promise import calibrate
from discreet.experiment.promise.promise import Privacy, client_groups
from discreet.experiment.terms import Terms

MOST_ROUNDS = 1_000_000


class Cost(NamedTuple):
    """The cost of one ε; the fields are JSON keys.

    Attributes:
        epsilon: The promised ε.
        noise_multiplier: The least noise that keeps it for all rounds. None if no noise is enough, or if the promise
            doesn't decide the noise.
        noise_to_signal: That noise beside the largest signal of a round's mean. None if the model's size is not known.
        rounds_at_this_noise: The rounds that today's noise affords.
    """

    epsilon: float
    noise_multiplier: float | None
    noise_to_signal: float | None
    rounds_at_this_noise: int


def price_promises(source: Source, terms: Terms, epsilons: Iterable[float]) -> Iterator[Cost]:
    """Yield the cost of each ε; nothing without a promise or where clients differ: there is no one answer then."""
    if terms.privacy is None or len(client_groups(terms.algorithm, terms.privacy, terms.population)) > 1:
        return
    algorithm, size = open_noise(source.experiment.algorithm), terms.parameters
    if algorithm is not None and terms.algorithm.standardisation is not None:
        algorithm = replace(algorithm, standardisation=terms.data.standardisation)
    for epsilon in epsilons:
        try:
            wanted = replace(terms.privacy, epsilon=epsilon)
            noisy = algorithm and calibrate.calibrate_noise(algorithm, wanted, terms.rounds, terms.population, size)
        except InvalidInput:  # no noise is enough
            noisy = None
        yield Cost(
            epsilon,
            noise_multiplier(noisy) if noisy else None,
            noise_to_signal(noisy, terms.population, size) if noisy and size is not None else None,
            affordable_rounds(terms, epsilon),
        )


def current_cost(terms: Terms, privacy: Privacy) -> Cost:
    """Return what the experiment promises today, with its own noise, which may be more than the promise takes."""
    size = terms.parameters
    ratio = None if size is None else noise_to_signal(terms.algorithm, terms.population, size)
    return Cost(
        privacy.largest_epsilon,
        noise_multiplier(terms.algorithm),
        ratio,
        affordable_rounds(terms, privacy.largest_epsilon),
    )


def open_noise(algorithm: Algorithm) -> Algorithm | None:
    """Return a copy whose noise a promise decides; None if the algorithm has no noise, or more than one."""
    if calibrate.has_open_noise(algorithm):
        return algorithm
    noisy = [name for name in ("trainer", "mechanism") if part_noise_multiplier(getattr(algorithm, name)) is not None]
    if len(noisy) != 1:
        return None
    return replace(algorithm, **{noisy[0]: replace(getattr(algorithm, noisy[0]), noise_multiplier=None)})


def affordable_rounds(terms: Terms, epsilon: float) -> int:
    """Return the most rounds whose ε stays within `epsilon`, up to a million."""

    def fits(rounds: int) -> bool:
        spent = terms.spent_epsilon(rounds)
        return spent is not None and spent <= epsilon

    low, high = 0, 1
    while high <= MOST_ROUNDS and fits(high):
        low, high = high, 2 * high
    high = min(high, MOST_ROUNDS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def format_affordable_rounds(rounds: int) -> str:
    """Write how many rounds a promise affords; "at least" where the search stopped before it found the last one."""
    return f"{'at least ' if rounds >= MOST_ROUNDS else ''}{rounds:,}"
