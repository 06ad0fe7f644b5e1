"""How many bits a coordinate of a noisy gradient takes: bounds, and a code that anybody can read."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from discreet.planning.theory import kim_gradient_bits

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
    def from_settings(
        cls, clipping: Clipping, coordinates: int, noise_multiplier: float, sampling_rate: float, examples: int
    ) -> "Upload":
        """Where examples are clipped, noise on their sum is divided by the expected batch, and so is the sum itself."""
        if clipping == "minibatch":
            return cls(coordinates, noise_multiplier)
        square = kim_gradient_bits.batch_second_moment(sampling_rate, examples)
        return cls(coordinates, noise_multiplier / (sampling_rate * examples), square)

    @property
    def variance(self) -> float:
        """A coordinate's second moment, on average over coordinates, is at most this."""
        return self.deviation**2 + self.square / self.coordinates

    def max_bits(self, step: float = STEP) -> float:
        return kim_gradient_bits.max_bits(self.coordinates, self.deviation, self.square) - math.log2(step)

    def at_least(self, step: float = STEP) -> float:
        """What the noise alone takes."""
        return kim_gradient_bits.min_bits(self.deviation) - math.log2(step)

    def printed_bits(self, step: float = STEP) -> float:
        """The paper's, which is wrong."""
        return kim_gradient_bits.printed_bits(self.coordinates, self.deviation) - math.log2(step)

    def code_length(self, gradient: Tensor, step: float = STEP) -> float:
        """Bits a coordinate of this gradient, rounded to multiples of `step`, in a code for N(0, variance).

        An arithmetic coder comes within two bits of the whole. Both ends know the variance.
        """
        nearest = (gradient.double() / step).round().abs()
        scale = step / math.sqrt(self.variance)
        near, far = (torch.special.log_ndtr(-(nearest + side) * scale) for side in (-0.5, 0.5))
        logarithms = near + torch.log1p(-torch.exp(far - near))
        return -float(logarithms.mean()) / math.log(2)
