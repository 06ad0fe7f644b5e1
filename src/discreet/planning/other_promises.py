"""The cost of other promises for one experiment: the noise for all its rounds, or the rounds at today's noise."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal, part_noise_multiplier
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.job import Job
from discreet.experiment.promise import calibrate
from discreet.experiment.promise.promise import Privacy, client_groups
from discreet.params import count_values

MOST_ROUNDS = 1_000_000


class Cost(NamedTuple):
    """The cost of one ε; the fields are JSON keys.

    Attributes:
        epsilon: The promised ε.
        noise_multiplier: The least noise that keeps it for all rounds. None if no noise is enough, or if the promise
            doesn't decide the noise.
        noise_to_signal: That noise beside the largest signal of a round's mean.
        rounds_at_this_noise: The rounds that today's noise affords.
    """

    epsilon: float
    noise_multiplier: float | None
    noise_to_signal: float | None
    rounds_at_this_noise: int


def price_promises(source: Source, job: Job, epsilons: Iterable[float]) -> Iterator[Cost]:
    """Yield the cost of each ε; nothing without a promise or where clients differ: there is no one answer then."""
    if job.privacy is None or len(client_groups(job.algorithm, job.privacy, job.population)) > 1:
        return
    algorithm, size = open_noise(source.experiment.algorithm), count_values(job.params)
    for epsilon in epsilons:
        try:
            wanted = replace(job.privacy, epsilon=epsilon)
            noisy = (
                calibrate.calibrate_noise(algorithm, wanted, job.rounds, job.population, size) if algorithm else None
            )
        except InvalidInput:  # no noise is enough
            noisy = None
        yield Cost(
            epsilon,
            noise_multiplier(noisy) if noisy else None,
            noise_to_signal(noisy, job.population, size) if noisy else None,
            affordable_rounds(job, epsilon),
        )


def current_cost(job: Job, privacy: Privacy) -> Cost:
    """Return what the experiment promises today, with its own noise, which may be more than the promise takes."""
    ratio = noise_to_signal(job.algorithm, job.population, count_values(job.params))
    return Cost(
        privacy.largest_epsilon,
        noise_multiplier(job.algorithm),
        ratio,
        affordable_rounds(job, privacy.largest_epsilon),
    )


def open_noise(algorithm: Algorithm) -> Algorithm | None:
    """Return a copy whose noise a promise decides; None if the algorithm has no noise, or more than one."""
    if calibrate.has_open_noise(algorithm):
        return algorithm
    noisy = [name for name in ("trainer", "mechanism") if part_noise_multiplier(getattr(algorithm, name)) is not None]
    if len(noisy) != 1:
        return None
    return replace(algorithm, **{noisy[0]: replace(getattr(algorithm, noisy[0]), noise_multiplier=None)})


def affordable_rounds(job: Job, epsilon: float) -> int:
    """Return the most rounds whose ε stays within `epsilon`, up to a million."""

    def fits(rounds: int) -> bool:
        spent = job.spent_epsilon(rounds)
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
