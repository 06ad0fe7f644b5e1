"""How many bits a coordinate of a noisy gradient takes: bounds, and a code that anybody can read."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Clipping = Literal["example", "minibatch"]
STEP = 0.01  # of the clip: the quantiser's, and less than the deviation of every noise here


@dataclass(frozen=True)
class Upload:
    """What a client sends, in units of its clip: a mean gradient of `coordinates`, and noise on each of them.

    All of it is public. `square` bounds E‖mean‖².
    """

    coordinates: int
    deviation: float
    square: float = 1.0

    @classmethod
    def of(
        cls, clipping: Clipping, coordinates: int, noise_multiplier: float, sampling_rate: float, examples: int
    ) -> "Upload":
        """Where examples are clipped, noise on their sum is divided by the expected batch, and so is the sum itself.

        A batch J drawn at rate q has E|J|² = (qn)² + qn(1−q), so E‖mean‖² ≤ 1 + (1−q)/(qn).
        """
        if clipping == "minibatch":
            return cls(coordinates, noise_multiplier)
        batch = sampling_rate * examples
        return cls(coordinates, noise_multiplier / batch, 1 + (1 - sampling_rate) / batch)

    @property
    def variance(self) -> float:
        """A coordinate's second moment, on average over coordinates, is at most this."""
        return self.deviation**2 + self.square / self.coordinates

    def at_most(self, step: float = STEP) -> float:
        """½·log2(2πe·(σ² + 1/d)) − log2(step): of all densities with this second moment the Gaussian's is largest."""
        return _entropy(self.variance) - math.log2(step)

    def at_least(self, step: float = STEP) -> float:
        """½·log2(2πe·σ²) − log2(step): what the noise alone takes, whatever it is added to."""
        return _entropy(self.deviation**2) - math.log2(step)

    def as_printed(self, step: float = STEP) -> float:
        """The paper's log2(2πe·σ/√d), which adds two differential entropies; they don't add up to that of a sum."""
        return math.log2(2 * math.pi * math.e * self.deviation / math.sqrt(self.coordinates)) - math.log2(step)

    def coded(self, gradient: Tensor, step: float = STEP) -> float:
        """Bits a coordinate of this gradient, rounded to multiples of `step`, in a code for N(0, variance).

        An arithmetic coder comes within two bits of the whole. Both ends know the variance.
        """
        nearest = (gradient.double() / step).round().abs()
        scale = step / math.sqrt(self.variance)
        near, far = (torch.special.log_ndtr(-(nearest + side) * scale) for side in (-0.5, 0.5))
        logarithms = near + torch.log1p(-torch.exp(far - near))
        return -float(logarithms.mean()) / math.log(2)


def _entropy(variance: float) -> float:
    """Of a Gaussian, in bits; differential, so it may be negative."""
    return math.log2(2 * math.pi * math.e * variance) / 2
