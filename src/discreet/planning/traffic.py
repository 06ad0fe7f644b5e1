"""The bytes that clients receive and send: of one client in a round, of one client in all, and of all clients."""

from collections.abc import Mapping

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.message_sizes import MessageBits
from discreet.algorithms.population import Population
from discreet.experiment.terms import Terms


def expected_traffic(
    algorithm: Algorithm,
    size: MessageBits,
    population: Population,
    rounds: int,
    limits: Mapping[int, int] | None = None,
) -> dict[str, int]:
    """Return the bytes of `rounds` rounds.

    Args:
        size: The bits of a round's messages.
        limits: The rounds after which a client leaves, by client, for those that leave early.

    Returns:
        `down` and `up` for one client in one round; `client_total`, the most for one client over all rounds, and
        `client_expected`, the expectation for a client that stays for all rounds; `all_down`, `all_up` and `all_total`,
        the expectation for all clients together.
    """
    sampling, early = algorithm.sampling, limits or {}
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


def planned_traffic(terms: Terms, rounds: int) -> dict[str, int] | None:
    """Return the bytes of `rounds` rounds of an experiment. None if the model's size is not known."""
    if terms.size is None:
        return None
    return expected_traffic(terms.algorithm, terms.size.bits, terms.population, rounds, terms.round_limits)
