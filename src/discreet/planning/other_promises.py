"""What another ε would cost the same experiment: noise for all its rounds, or rounds at today's noise."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal, part_noise_multiplier
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.loop.job import Job
from discreet.experiment.promise import calibrate
from discreet.experiment.promise.promise import Privacy, client_groups
from discreet.params import count_values

MOST_ROUNDS = 1_000_000


class Cost(NamedTuple):
    """Of one ε; no noise where none is enough, or where it isn't the promise that decides it."""

    epsilon: float
    noise_multiplier: float | None
    noise_to_signal: float | None
    rounds_at_this_noise: int


def costs(source: Source, job: Job, epsilons: Iterable[float]) -> Iterator[Cost]:
    """Nothing without a promise, nor where clients differ: there is no one answer then."""
    if job.privacy is None or len(client_groups(job.algorithm, job.privacy, job.population)) > 1:
        return
    algorithm, size = opened(source.experiment.algorithm), count_values(job.params)
    for epsilon in epsilons:
        try:
            wanted = replace(job.privacy, epsilon=epsilon)
            found = (
                calibrate.calibrate_noise(algorithm, wanted, job.rounds, job.population, size) if algorithm else None
            )
        except InvalidInput:  # no noise is enough
            found = None
        yield Cost(
            epsilon,
            noise_multiplier(found) if found else None,
            noise_to_signal(found, job.population, size) if found else None,
            affordable(job, epsilon),
        )


def today(job: Job, privacy: Privacy) -> Cost:
    """What the experiment promises, with the noise that it has: more than that takes, where it is given."""
    loudness = noise_to_signal(job.algorithm, job.population, count_values(job.params))
    return Cost(
        privacy.largest_epsilon, noise_multiplier(job.algorithm), loudness, affordable(job, privacy.largest_epsilon)
    )


def opened(algorithm: Algorithm) -> Algorithm | None:
    """The same with its noise open, so that a promise decides it; None where it has none, or more than one."""
    if calibrate.has_open_noise(algorithm):
        return algorithm
    noisy = [name for name in ("trainer", "mechanism") if part_noise_multiplier(getattr(algorithm, name)) is not None]
    if len(noisy) != 1:
        return None
    return replace(algorithm, **{noisy[0]: replace(getattr(algorithm, noisy[0]), noise_multiplier=None)})


def affordable(job: Job, epsilon: float) -> int:
    """The most rounds whose ε stays within this, up to a million."""

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
