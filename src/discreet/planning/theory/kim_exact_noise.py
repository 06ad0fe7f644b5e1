"""The true ε of a local noise and the least noise for a promise: what we use in place of Kim, Günlü & Schaefer 2021."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from discreet.planning.theory.kim_noise_bounds import Promise
from discreet.privacy import accountant
from discreet.privacy.calibration import MOST, EpsilonTarget, calibrate_noise
from discreet.privacy.events import Event, sampled_gaussian

Clipping: TypeAlias = Literal["per_example", "minibatch"]

# How far one example can move a client's message, in units of the clip norm C: by its own clipped gradient in the sum;
# or by moving a clipped mean from one end of the ball to the other.
SENSITIVITIES: Mapping[Clipping, float] = {"per_example": 1.0, "minibatch": 2.0}


def required_variance(clipping: Clipping, promise: Promise) -> float:
    """Return the least σ² for which N(0, C²σ²) keeps the promise, by add or remove.

    Guarantee: σ = 2z for clipped minibatches, and z for clipped examples, where T Poisson samples at rate q with a
    noise multiplier of z are accounted at no more than ε.
    """
    return (SENSITIVITIES[clipping] * _required_multiplier(promise)) ** 2


@lru_cache(maxsize=1024)  # both kinds of clipping need it, and so does every line of a table
def _required_multiplier(promise: Promise) -> float:
    target = EpsilonTarget(epsilon=promise.epsilon, delta=promise.delta)
    return calibrate_noise(lambda multiplier: _event(multiplier, promise), target)


@lru_cache(maxsize=1024)
def certified_epsilon(clipping: Clipping, noise_variance: float, promise: Promise) -> float:
    """Return the true ε of N(0, C²σ²) at the promise's δ, whatever ε is promised: an upper bound, tight by PLD."""
    multiplier = math.sqrt(noise_variance) / SENSITIVITIES[clipping]
    return accountant.epsilon(_event(min(multiplier, MOST), promise), promise.delta)


def _event(noise_multiplier: float, promise: Promise) -> Event:
    """Return what a client reveals about one of its examples over all rounds."""
    return sampled_gaussian(noise_multiplier, promise.sampling_rate, promise.rounds)
