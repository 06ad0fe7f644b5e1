"""How much noise was seen, which shape it has, and whether two draws share it: tests whose false alarms are rare.

Every test is made on at least SAMPLES values, and refuses a sound part with a probability of at most 1e-6. The sample
deviation of n values of kurtosis κ has a relative standard error of √((κ − 1)/(4n)): 0.55 % for 16,384 Gaussian values
and 0.87 % for Laplace values. A shortfall of 5 % is 9 and 5.7 of them, which happen with probabilities of 1e-19 and
6e-9. A correlation of independent values has a standard error of 1/√n = 0.0078, and 0.05 is 6.4 of them (2e-10). Of
the d/2 distances at which a vector of d values may repeat itself, one exceeds 7 standard errors with a probability of
d·1.3e-12.
"""

import math

import torch
from torch import Tensor

from discreet.errors import Unsupported
from discreet.privacy.events import (
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    SkellamNoise,
    ZeroConcentrated,
)

SAMPLES = 16_384  # the fewest values that noise is measured on
SHORTFALL = 0.95  # the least part of the declared noise that must be seen
MAX_CORRELATION = 0.05
ERRORS = 6.0  # standard errors that a single tensor's noise may fall short: a probability of 1e-9
MAX_REPETITION = 7.0  # standard errors
FALSE_ALARM = 1e-6


def deviation_ratio(noise: Noise) -> float:
    """Return the declared standard deviation of a coordinate over the most that one unit moves the sum by.

    Raises:
        Unsupported: Only a bound is declared, and no noise.
    """
    match noise:
        case GaussianNoise():
            return noise.noise_multiplier
        case LaplaceNoise():
            return math.sqrt(2) * noise.noise_multiplier
        case DistributedDiscreteGaussianNoise():
            return math.sqrt(noise.variance * noise.shares) / noise.l2_sensitivity
        case SkellamNoise() | DiscreteGaussianNoise():
            return math.sqrt(noise.variance) / noise.l2_sensitivity
        case ZeroConcentrated():
            raise Unsupported(
                "A mechanism of which only a zCDP bound is declared has no noise that could be measured.",
                fix="Declare the noise itself.",
            )


def norm_order(noise: Noise) -> int:
    """Return the order of the norm that the noise is declared relative to."""
    return 1 if isinstance(noise, LaplaceNoise) else 2


def is_continuous(noise: Noise) -> bool:
    """Return whether the noise has real values, so that a coordinate without noise shows."""
    return isinstance(noise, GaussianNoise | LaplaceNoise)


def deviation(values: Tensor) -> float:
    """Return the standard deviation over all values."""
    return float(values.double().std(correction=0))


def relative_error(noise: Noise, values: int) -> float:
    """Return the relative standard error of the deviation of this many values."""
    kurtosis = 6.0 if isinstance(noise, LaplaceNoise) else 3.0
    return math.sqrt((kurtosis - 1) / (4 * values))


def correlation(left: Tensor, right: Tensor) -> float:
    """Return the correlation of two vectors; 0 if one is constant."""
    first, second = (each.double().flatten() - each.double().mean() for each in (left, right))
    size = float(first.norm() * second.norm())
    return float(first @ second) / size if size > 0 else 0.0


def repetition(values: Tensor) -> float:
    """Return the largest correlation of rows with themselves, shifted by any distance; in standard errors."""
    centred = values.double() - values.double().mean()  # a mean of each row would correlate short rows
    width = values.shape[1]
    power = torch.fft.rfft(centred, dim=1).abs().square().sum(dim=0)
    by_distance = torch.fft.irfft(power, n=width)
    if width < 8 or not by_distance[0] > 0:
        return 0.0
    return float((by_distance[1:] / by_distance[0]).abs().max()) * math.sqrt(values.numel())


def shape_distance(values: Tensor, noise: Noise) -> float:
    """Return the largest distance between the distribution of standardised values and the declared one.

    This is the statistic of Kolmogorov and Smirnov with estimated mean and deviation, which make it smaller.
    """
    centred = values.double().flatten() - values.double().mean()
    ordered = (centred / centred.std(correction=0)).sort().values
    if isinstance(noise, LaplaceNoise):
        tail = torch.exp(-math.sqrt(2) * ordered.abs()) / 2
        expected = torch.where(ordered < 0, tail, 1 - tail)
    else:
        expected = torch.special.ndtr(ordered)
    steps = torch.arange(len(ordered) + 1, dtype=torch.float64, device=ordered.device) / len(ordered)
    return float(torch.maximum((steps[1:] - expected).max(), (expected - steps[:-1]).max()))


def max_shape_distance(values: int) -> float:
    """Return the distance that the right distribution exceeds with a probability of at most FALSE_ALARM.

    Dvoretzky, Kiefer and Wolfowitz, with Massart's constant: P(D > t) ≤ 2·exp(−2nt²).
    """
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * values))
