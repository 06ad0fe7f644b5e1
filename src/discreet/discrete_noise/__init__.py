"""Integer noise for sums of integers: Skellam and discrete Gaussian, in int64 from end to end."""

from discreet.discrete_noise.chunks import Source
from discreet.discrete_noise.gaussian import LARGEST as LARGEST_VARIANCE
from discreet.discrete_noise.gaussian import discrete_gaussian
from discreet.discrete_noise.shares import shares
from discreet.discrete_noise.skellam import LARGEST_RATE, SMALLEST_RATE, skellam, spoilt

__all__ = [
    "LARGEST_RATE",
    "LARGEST_VARIANCE",
    "SMALLEST_RATE",
    "Source",
    "discrete_gaussian",
    "shares",
    "skellam",
    "spoilt",
]
