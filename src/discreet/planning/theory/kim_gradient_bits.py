"""Kim, Günlü & Schaefer 2021: how many bits a noisy gradient takes (its transmission rate R_tr).

A client sends a gradient g of d coordinates with E‖g‖² ≤ m·C², and N(0, C²σ²) on each coordinate. The paper calls the
differential entropy of the result its transmission rate. That is a number of bits only after a rounding step is chosen:
h − d·log2(step), for steps that are small compared to the noise.

What is wrong: the printed rate adds the entropies of gradient and noise, which does not bound the entropy of their sum.
What we use: the entropy of a Gaussian with the same second moment, an upper bound.
"""

import math
from typing import NamedTuple

TWO_PI_E = 2 * math.pi * math.e


class GradientBits(NamedTuple):
    """Bits of one gradient; the fields are JSON keys.

    Attributes:
        printed: The paper's number.
        corrected: A true upper bound.
        noise_alone: A lower bound: the bits of the noise alone.
    """

    printed: float
    corrected: float
    noise_alone: float

    @property
    def printed_holds(self) -> bool:
        """Whether the printed number is at least the proved one; it is less from d = 2πe·C² on, about 17·C²."""
        return self.printed >= self.corrected


def gradient_bits(
    dimension: int, noise_variance: float, *, clip_norm: float = 1.0, second_moment: float = 1.0, step: float = 1.0
) -> GradientBits:
    """Return the bits of one gradient that is rounded to multiples of `step`; m = `second_moment`."""
    deviation, scaled = math.sqrt(noise_variance), step / clip_norm
    per_coordinate = (
        printed_bits(dimension, deviation, clip_norm=clip_norm) - math.log2(step),
        max_bits(dimension, deviation, second_moment) - math.log2(scaled),
        min_bits(deviation) - math.log2(scaled),
    )
    return GradientBits(*(dimension * bits for bits in per_coordinate))


def printed_bits(dimension: int, deviation: float, *, clip_norm: float = 1.0) -> float:
    """Return log2(2πe·C²σ/√d) bits per coordinate (R_tr, as printed).

    Wrong: it is h(gradient) + h(noise), which does not bound the differential entropy of the sum. From d = 2πe·C² on
    it is less than h(noise) alone.
    """
    return math.log2(TWO_PI_E * clip_norm**2 * deviation / math.sqrt(dimension))


def max_bits(dimension: int, deviation: float, second_moment: float = 1.0) -> float:
    """Return ½·log2(2πe·(σ² + m/d)) bits per coordinate at C = 1, an upper bound.

    Of all densities with this second moment the Gaussian has the largest entropy, which is concave in the variance, so
    equal coordinates are the worst case.
    """
    return _gaussian_entropy(deviation**2 + second_moment / dimension)


def min_bits(deviation: float) -> float:
    """Return ½·log2(2πe·σ²) bits per coordinate at C = 1: the noise alone, whatever it is added to."""
    return _gaussian_entropy(deviation**2)


def batch_second_moment(sampling_rate: float, examples: float) -> float:
    """Return m = 1 + (1−q)/(qn) of a sum of clipped gradients divided by the expected batch.

    A batch J drawn at rate q of n examples has E|J|² = (qn)² + qn(1−q).
    """
    return 1 + (1 - sampling_rate) / (sampling_rate * examples)


def _gaussian_entropy(variance: float) -> float:
    """Return the differential entropy of a Gaussian in bits; it may be negative."""
    return math.log2(TWO_PI_E * variance) / 2
