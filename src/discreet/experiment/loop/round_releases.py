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
    there, left = range(job.population.clients) if known is None else known, job.spent_clients(round)
    payers = [client for client in there if client not in left] if left else there
    return releases_of_round(job, round, payers, shared=shared)


def releases_of_round(
    job: Job, round: int, cohort: Sequence[int], *, noise_shares: int | None = None, shared: bool
) -> list[Release]:
    """Return what the round releases.

    Args:
        cohort: The clients that pay.
        noise_shares: Clients that contributed noise. None assumes the planned minimum.
        shared: Whether the ledger is shared with other runs. All clients then pay as much as the one that reveals most,
            since another run may have dealt the same examples to other clients.
    """
    if shared:
        return job.algorithm.worst_case().releases(job.population, round, contributors=noise_shares)
    payers = None if len(cohort) == job.population.clients else tuple(cohort)
    return job.algorithm.releases(job.population, round, payers, noise_shares)


def draw_cohort(job: Job, round: int) -> list[int]:
    """Draw the cohort of a round, without clients whose budget is spent."""
    drawn = job.algorithm.sampling.sample(job.population, round, job.key.generator(Purpose.SAMPLING, round))
    return sorted(set(drawn) - job.spent_clients(round))
