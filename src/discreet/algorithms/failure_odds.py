"""Small probabilities of failure in sums of integers: a wrap-around of the ring, and an inexact random draw."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.algorithms.population import Population
from discreet.privacy.wording import round_up
from discreet.secure_sums.discrete_noise.skellam_sampler import skellam_error_probability
from discreet.words import fill

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


def describe_failure_odds(algorithm: "Algorithm", population: Population, rounds: int) -> Iterator[str]:
    """Describe each probability in a sentence, with its value over `rounds` rounds. Empty for real numbers."""
    chance, grid = algorithm.wraparound_probability(population, rounds), algorithm.grid(population)
    integers, bits = algorithm.mechanism.integer_shares, algorithm.aggregation.ring_bits
    if chance is None or grid is None or integers is None:
        return
    yield fill(
        "assumes.wraparound_one_round" if rounds == 1 else "assumes.wraparound",
        rounds=f"{rounds:,}",
        bits=str(bits),
        probability=round_up(chance, 2),
    )
    if integers.noise == "skellam":
        # A failed draw is a missing share; the other clients' shares are still there (decision 8).
        more = skellam_error_probability(grid.dimension * rounds)
        yield fill("assumes.poisson_draws", probability=round_up(more, 2))
