"""What a noise truly costs, and the least that keeps a promise: our own accountant beside paper 001's bounds."""

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

from discreet.planning.theory.kim_noise_bounds import Promise
from discreet.privacy import accountant
from discreet.privacy.calibration import MOST, EpsilonTarget, calibrate_noise
from discreet.privacy.events import Event, sampled_gaussian

Clipping: TypeAlias = Literal["per_example", "minibatch"]

# What one example moves a client's message by, at most, in units of the clip C: its own clipped gradient in the sum;
# or a clipped mean from one end of the ball to the other.
SENSITIVITIES: Mapping[Clipping, float] = {"per_example": 1.0, "minibatch": 2.0}


def required_variance(clipping: Clipping, promise: Promise) -> float:
    """The least σ² for which N(0, C²σ²) keeps the promise, by add or remove.

    Guarantee: σ = 2z for clipped minibatches, and z for clipped examples, where T Poisson samples at rate q with a
    noise multiplier of z were accounted at no more than ε.
    """
    target = EpsilonTarget(epsilon=promise.epsilon, delta=promise.delta)
    return (SENSITIVITIES[clipping] * calibrate_noise(lambda multiplier: _released(multiplier, promise), target)) ** 2


def certified_epsilon(clipping: Clipping, noise_variance: float, promise: Promise) -> float:
    """The ε that N(0, C²σ²) really has at the promise's δ, whatever ε was promised; an upper bound, tight by PLD."""
    multiplier = math.sqrt(noise_variance) / SENSITIVITIES[clipping]
    return accountant.epsilon(_released(min(multiplier, MOST), promise), promise.delta)


def _released(noise_multiplier: float, promise: Promise) -> Event:
    """What a client sends over all rounds, of one of its examples."""
    return sampled_gaussian(noise_multiplier, promise.sampling_rate, promise.rounds)
