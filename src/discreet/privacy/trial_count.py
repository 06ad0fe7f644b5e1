"""The distributions from which the secret number of trials of a private search is drawn."""

import itertools
import math
import secrets
from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from discreet.errors import InvalidInput
from discreet.part import Positive, Real, part

_UNIT = 2**53  # of the grid on which a double between 0 and 1 is drawn


@part
class TruncatedNegativeBinomial:
    """At least one trial: P[K = k] ∝ (1−γ)^k·∏_{l<k} (l+η)/(l+1) (Papernot & Steinke 2022, Definition 1).

    η is the shape: 1 is the geometric distribution, 0 the logarithmic one. γ is the stop probability.
    """

    kind: Literal["negative_binomial"] = "negative_binomial"
    shape: Real
    stop_probability: Positive

    def __post_init__(self) -> None:
        if not self.shape > -1:
            raise InvalidInput(f"shape must be above -1, and got {self.shape:g}.")
        if not self.stop_probability < 1:
            raise InvalidInput(f"stop_probability must be below 1, and got {self.stop_probability:g}.")

    @property
    def log_stop(self) -> float:
        """log(1/γ)."""
        return -math.log(self.stop_probability)

    @property
    def mean(self) -> float:
        """The expected number of trials."""
        return (1 / self.stop_probability - 1) * _scale(self.shape, -self.log_stop)

    def probabilities(self) -> Iterator[float]:
        """Yield P[K = 0], P[K = 1], … for ever."""
        yield 0.0
        rest, k = 1 - self.stop_probability, 1
        probability = rest * _scale(self.shape, self.log_stop)
        while True:
            yield probability
            probability *= rest * (k + self.shape) / (k + 1)
            k += 1


@part
class PoissonTrials:
    """A Poisson number of trials. It may be zero: then nothing is released."""

    kind: Literal["poisson"] = "poisson"
    mean: Positive

    def probabilities(self) -> Iterator[float]:
        """Yield P[K = 0], P[K = 1], … for ever."""
        for k in itertools.count():
            yield math.exp(k * math.log(self.mean) - self.mean - math.lgamma(k + 1))


TrialCount: TypeAlias = Annotated[TruncatedNegativeBinomial | PoissonTrials, Field(discriminator="kind")]


Distribution: TypeAlias = Literal["geometric", "logarithmic", "poisson"]


def named_count(distribution: Distribution, mean: float) -> TrialCount:
    """Return the distribution of this name and mean.

    Raises:
        InvalidInput: The mean is not above 1 for a distribution that has at least one trial.
    """
    if distribution == "poisson":
        return PoissonTrials(mean=mean)
    return count_with_mean(mean, 1.0 if distribution == "geometric" else 0.0)


def count_with_mean(mean: float, shape: float) -> TruncatedNegativeBinomial:
    """Return the truncated negative binomial distribution of this shape whose mean is at most, and nearly, `mean`.

    Raises:
        InvalidInput: The mean is not above 1, or the shape is not above -1.
    """
    if not mean > 1:
        raise InvalidInput(f"The expected number of trials must be above 1, and got {mean:g}.")
    low, high = 0.0, 1.0  # of γ; the mean falls from infinity to 1
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        at_middle = TruncatedNegativeBinomial(shape=shape, stop_probability=middle).mean
        low, high = (middle, high) if at_middle > mean else (low, middle)
    return TruncatedNegativeBinomial(shape=shape, stop_probability=min(high, math.nextafter(1.0, 0.0)))


def draw_count(count: TrialCount) -> int:
    """Draw the number of trials from the operating system's entropy. It must stay secret."""
    return _invert(count, secrets.randbelow(_UNIT) / _UNIT)


def _invert(count: TrialCount, uniform: float) -> int:
    """Return the smallest k with P[K ≤ k] above `uniform`, or the k after which no double tells the sums apart."""
    total, k = 0.0, -1
    for k, probability in enumerate(count.probabilities()):
        before, total = total, total + probability
        if total > uniform or (total == before and k > count.mean):
            break
    return k


def _scale(shape: float, exponent: float) -> float:
    """Return |η/(e^(exponent·η) − 1)|, and its limit 1/|exponent| at η = 0."""
    return abs(shape / math.expm1(shape * exponent)) if shape else 1 / abs(exponent)
