"""What sums of integers leave to chance: that one leaves its ring, and that a draw is not what it is taken for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.algorithms.aggregation import Lattice
from discreet.algorithms.population import Population
from discreet.privacy.wording import round_up
from discreet.secure_sums.discrete_noise import skellam_error_probability

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


def describe_failure_odds(algorithm: "Algorithm", population: Population, rounds: int) -> Iterator[str]:
    """A sentence each, with the number for so many rounds; none where updates are real numbers."""
    chance, grid = algorithm.wraparound_probability(population, rounds), algorithm.grid(population)
    if chance is None or grid is None or not isinstance(algorithm.aggregation, Lattice):
        return
    yield (
        f"Over {rounds:,} round{'' if rounds == 1 else 's'} a sum leaves its ring of {algorithm.aggregation.bits} bits "
        f"with a probability of at most {round_up(chance, 2)}: that would spoil the model, and reveal nothing."
    )
    if algorithm.mechanism.kind == "skellam":
        # A spoilt draw is a share that lacks; where it is one of many, the others' noise is there (decision 8).
        more = skellam_error_probability(grid.dimension * rounds)
        yield (
            "A Poisson number drawn by numpy is one but for a chance of 2^-52: over all rounds and coordinates that "
            f"may add up to {round_up(more, 2)} to δ, which is not counted."
        )
