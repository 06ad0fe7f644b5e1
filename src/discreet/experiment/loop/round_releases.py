"""Who is in a round, and what the round releases: as planned, and once it is known who contributed."""

from collections.abc import Sequence

from discreet.experiment.job import Job
from discreet.privacy.release import Release
from discreet.randomness.purposes import Purpose


def planned_releases(job: Job, round: int, *, shared: bool) -> list[Release]:
    """Return what the round will release, as far as it is known before the cohort is drawn.

    It is empty if the budgets of all clients that could join are spent.
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
    """Return what the round releases.

    Args:
        payers: The clients that pay. None for all.
        noise_shares: Clients that contributed noise. None assumes the planned minimum.
        shared: Whether the ledger is shared with other runs. All clients then pay as much as the one that reveals most,
            since another run may have dealt the same examples to other clients.
    """
    if shared:
        return job.algorithm.worst_case().releases(job.population, round, contributors=noise_shares)
    return job.algorithm.releases(job.population, round, payers, noise_shares)


def paying_clients(job: Job, cohort: Sequence[int]) -> tuple[int, ...] | None:
    """Return the clients that pay, or None if all of them do."""
    return None if len(cohort) == job.population.clients else tuple(cohort)


def draw_cohort(job: Job, round: int) -> list[int]:
    """Draw the cohort of a round, without clients whose budget is spent."""
    drawn = job.algorithm.sampling.sample(job.population, round, job.key.generator(Purpose.SAMPLING, round))
    return sorted(set(drawn) - job.spent_clients(round))
