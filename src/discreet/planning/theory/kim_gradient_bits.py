"""How many bits a noisy gradient takes: paper 001's bound, one that is true, and what the noise alone takes.

A client sends a gradient g of d coordinates with E‖g‖² ≤ m·C², and N(0, C²σ²) on each coordinate. The paper calls the
differential entropy of that its transmission rate. It is no number of bits before a step is chosen to round to: then it
is h − d·log2(step), for steps that are small beside the noise.
"""

import math
from typing import NamedTuple

TWO_PI_E = 2 * math.pi * math.e


class GradientBits(NamedTuple):
    """Bits for one gradient."""

    printed: float
    corrected: float  # at most
    noise_alone: float  # at least

    @property
    def printed_holds(self) -> bool:
        """Whether what is printed is no less than what is proved; it is less from d = 2πe·C² on, about 17·C²."""
        return self.printed >= self.corrected


def gradient_bits(
    dimension: int, noise_variance: float, *, clip_norm: float = 1.0, second_moment: float = 1.0, step: float = 1.0
) -> GradientBits:
    """All three for one gradient, rounded to multiples of `step`, in the units of the clip; m = `second_moment`."""
    deviation, scaled = math.sqrt(noise_variance), step / clip_norm
    each = (
        printed_bits(dimension, deviation, clip_norm=clip_norm) - math.log2(step),
        max_bits(dimension, deviation, second_moment) - math.log2(scaled),
        min_bits(deviation) - math.log2(scaled),
    )
    return GradientBits(*(dimension * bits for bits in each))


def printed_bits(dimension: int, deviation: float, *, clip_norm: float = 1.0) -> float:
    """log2(2πe·C²σ/√d) bits a coordinate (paper 001, R_tr).

    Wrong: it is h(gradient) + h(noise), and differential entropies of a sum are not bounded so. From d = 2πe·C² on it
    is less than h(noise) alone.
    """
    return math.log2(TWO_PI_E * clip_norm**2 * deviation / math.sqrt(dimension))


def max_bits(dimension: int, deviation: float, second_moment: float = 1.0) -> float:
    """½·log2(2πe·(σ² + m/d)) bits a coordinate, at C = 1: of all densities with this second moment the Gaussian's is
    the largest, and it is concave in the variance, so coordinates that are alike are the worst.
    """
    return _entropy(deviation**2 + second_moment / dimension)


def min_bits(deviation: float) -> float:
    """½·log2(2πe·σ²) bits a coordinate, at C = 1: what the noise alone takes, whatever it is added to."""
    return _entropy(deviation**2)


def batch_second_moment(sampling_rate: float, examples: float) -> float:
    """m = 1 + (1−q)/(qn): of a sum of clipped gradients divided by the expected batch.

    A batch J drawn at rate q of n examples has E|J|² = (qn)² + qn(1−q).
    """
    return 1 + (1 - sampling_rate) / (sampling_rate * examples)


def _entropy(variance: float) -> float:
    """Of a Gaussian, in bits; differential, so it may be negative."""
    return math.log2(TWO_PI_E * variance) / 2
