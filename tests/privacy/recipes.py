"""Events that many tests use."""

from discreet.privacy.events import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
)


def gaussian(z: float, *, rate: float = 1.0, times: int = 1) -> Event:
    return Repeated(count=times, event=PoissonSampled(sampling_rate=rate, event=GaussianNoise(noise_multiplier=z)))


def laplace(b: float, *, rate: float = 1.0, times: int = 1) -> Event:
    return Repeated(count=times, event=PoissonSampled(sampling_rate=rate, event=LaplaceNoise(noise_multiplier=b)))


def fixed_size(z: float, *, cohort: int, population: int, times: int = 1) -> Event:
    noise = GaussianNoise(noise_multiplier=z)
    return Repeated(count=times, event=SampledWithoutReplacement(cohort=cohort, population=population, event=noise))
