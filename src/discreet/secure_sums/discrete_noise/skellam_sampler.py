"""Skellam noise: the difference of two Poisson draws. Sums of it are Skellam again, so clients can share the noise."""

import numpy as np

from discreet.errors import InvalidInput
from discreet.secure_sums.discrete_noise.chunks import Integers, Source, draw_in_chunks

# numpy compares logarithms of size λ·ln λ in doubles. To 1e12 that rounds each integer's chance by 0.2 %, in ways that
# neighbours don't share, so sums average over it; at 1e14 the variance is off (docs/results/discrete_noise.md).
LARGEST_RATE = 1e12
SMALLEST_RATE = 1e-6  # below, e^−λ in doubles leaves fewer than ten digits of the chance to draw anything but 0

DRAW_ERROR = 2.0**-52  # of one Poisson draw: in 2^-53 of its proposals, fewer than two a draw, any number is accepted


def draw_skellam(
    key: bytes, variance: float, shape: tuple[int, ...], source: Source, threads: int | None = None
) -> Integers:
    """Draw integers of mean 0 and this variance, each the difference of two Poisson draws of half the variance.

    Guarantee: the sum of n such arrays of variance v/n, under different keys, is Skellam noise of variance v, up to the
    errors of numpy's Poisson draws in docs/decisions/0008. A variance outside their sound range is refused.
    """
    rate = variance / 2
    if not SMALLEST_RATE <= rate <= LARGEST_RATE:
        raise InvalidInput(
            f"Skellam noise is drawn for a variance between {2 * SMALLEST_RATE:g} and {2 * LARGEST_RATE:g}, where "
            f"numpy's Poisson draws are sound, and got {variance:g}.",
            fix="Choose a smaller scale of the lattice, or more shares." if rate > LARGEST_RATE else "",
        )

    def difference(generator: np.random.Generator, size: int) -> Integers:
        result: Integers = generator.poisson(rate, size)
        result -= generator.poisson(rate, size)
        return result

    return draw_in_chunks(key, shape, source, difference, threads)


def skellam_error_probability(numbers: int) -> float:
    """Return a bound on the probability that any of `numbers` Skellam numbers is not drawn from its distribution."""
    return min(1.0, 2 * numbers * DRAW_ERROR)
