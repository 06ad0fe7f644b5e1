"""Who is in a round, and what it releases: before anybody is drawn, and when it is known who contributed."""

from collections.abc import Sequence

from discreet.experiment.loop.job import Job
from discreet.privacy.release import Release
from discreet.randomness.purposes import Purpose


def planned_releases(job: Job, round: int, *, shared: bool) -> list[Release]:
    """What the round will release, as far as it is known before anybody is drawn.

    Nothing, where the budgets of all whose turn it is are spent.
    """
    known = job.algorithm.sampling.public_cohort(job.population, round)
    there = range(job.population.clients) if known is None else known
    left = job.spent_clients(round)
    return releases_of_round(
        job, round, paying_clients(job, [client for client in there if client not in left]), shared=shared
    )


def releases_of_round(
    job: Job, round: int, payers: tuple[int, ...] | None, *, noise_shares: int | None = None, shared: bool
) -> list[Release]:
    """In a ledger that runs share, everyone pays alike, and as much as the one who reveals most: who is client 3 is
    this run's own business, and another run may have dealt the same examples out differently.
    """
    if shared:
        return job.algorithm.worst_case().releases(job.population, round, contributors=noise_shares)
    return job.algorithm.releases(job.population, round, payers, noise_shares)


def paying_clients(job: Job, cohort: Sequence[int]) -> tuple[int, ...] | None:
    """Those who pay, by number; all of them need no naming."""
    return None if len(cohort) == job.population.clients else tuple(cohort)


def draw_cohort(job: Job, round: int) -> list[int]:
    """Those who are drawn, but for the ones whose budget is spent."""
    drawn = job.algorithm.sampling.sample(job.population, round, job.key.generator(Purpose.SAMPLING, round))
    return sorted(set(drawn) - job.spent_clients(round))
