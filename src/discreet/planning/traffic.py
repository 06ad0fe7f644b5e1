"""The bytes that clients receive and send: of one client in a round, of one client in all, and of all clients."""

from collections.abc import Mapping

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.population import Population
from discreet.experiment.job import Job
from discreet.params import Params


def expected_traffic(
    algorithm: Algorithm, params: Params, population: Population, rounds: int, limits: Mapping[int, int] | None = None
) -> dict[str, int]:
    """Return the bytes of `rounds` rounds.

    Args:
        limits: The rounds after which a client leaves, by client, for those that leave early.

    Returns:
        `down` and `up` for one client in one round; `client_total`, the most for one client over all rounds, and
        `client_expected`, the expectation for a client that stays for all rounds; `all_down`, `all_up` and `all_total`,
        the expectation for all clients together.
    """
    size, sampling, early = message_bits(algorithm, params), algorithm.sampling, limits or {}
    down, up, joined = size.down // 8, size.up // 8, sampling.rounds_joined(population, rounds)
    rate = sampling.expected_cohort(population) / population.clients
    visits = round(rate * sum(early.get(client, rounds) for client in range(population.clients)))
    return {
        "down": down,
        "up": up,
        "client_total": (up + down) * joined,
        "client_expected": round((up + down) * rate * rounds),
        "all_down": down * visits,
        "all_up": up * visits,
        "all_total": (up + down) * visits,
    }


def job_traffic(job: Job, rounds: int) -> dict[str, int]:
    """Return the bytes of `rounds` rounds of an experiment."""
    return expected_traffic(job.algorithm, job.params, job.population, rounds, job.round_limits)
