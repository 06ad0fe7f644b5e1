"""Integer noise for sums of integers: Skellam and discrete Gaussian, in int64 from end to end."""

from discreet.secure_sums.discrete_noise.chunks import Source
from discreet.secure_sums.discrete_noise.gaussian_sampler import LARGEST as LARGEST_VARIANCE
from discreet.secure_sums.discrete_noise.gaussian_sampler import draw_discrete_gaussian
from discreet.secure_sums.discrete_noise.noise_shares import draw_noise_shares
from discreet.secure_sums.discrete_noise.skellam_sampler import (
    LARGEST_RATE,
    SMALLEST_RATE,
    draw_skellam,
    skellam_error_probability,
)

__all__ = [
    "LARGEST_RATE",
    "LARGEST_VARIANCE",
    "SMALLEST_RATE",
    "Source",
    "draw_discrete_gaussian",
    "draw_noise_shares",
    "draw_skellam",
    "skellam_error_probability",
]
