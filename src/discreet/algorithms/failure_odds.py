"""Small probabilities of failure in sums of integers: a wrap-around of the ring, and an inexact random draw."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.algorithms.population import Population
from discreet.secure_sums.discrete_noise.skellam_sampler import skellam_error_probability

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


@dataclass(frozen=True)
class FailureOdds:
    """Bounds on the probability that sums of integers fail in any of several rounds.

    Attributes:
        ring_bits: Number of bits of the ring.
        wraparound: That a sum leaves the ring. The model is spoiled then, and nothing is revealed.
        inexact_draws: That a number of the noise is not drawn from its distribution. None if all draws are exact.
    """

    ring_bits: int | None
    wraparound: float
    inexact_draws: float | None


def find_failure_odds(algorithm: "Algorithm", population: Population, rounds: int) -> FailureOdds | None:
    """Return the odds over `rounds` rounds. None for sums of real numbers."""
    chance, grid = algorithm.wraparound_probability(population, rounds), algorithm.grid(population)
    integers, bits = algorithm.mechanism.integer_shares, algorithm.aggregation.ring_bits
    if chance is None or grid is None or integers is None:
        return None
    # A failed draw is a missing share; the other clients' shares are still there (decision 8).
    draws = skellam_error_probability(grid.dimension * rounds) if integers.noise == "skellam" else None
    return FailureOdds(bits, chance, draws)
