"""The curves of the poster's three graphs at its own parameters, and what is exact in place of each."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from discreet.planning.theory import kim_exact_noise, kim_gradient_bits, kim_utility
from discreet.planning.theory.kim_gradient_bits import GradientBits
from discreet.planning.theory.kim_noise_bounds import MIN_VARIANCE, Promise, noise_bound
from discreet.planning.theory.kim_utility import Learning

CLIENTS, DIMENSION = 100, 10_000
POSTER = Promise(epsilon=1.0, delta=1e-4, sampling_rate=1e-3, rounds=70_000)
LEARNING = Learning(rounds=POSTER.rounds, dimension=DIMENSION, clip_norm=1.0, gradient_bound=5.0)
EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)


class Curve(NamedTuple):
    """`noise` is σ² of one client at an ε, before σ ≥ 1 is applied."""

    label: str
    noise: Callable[[float], float]
    exact: bool = False

    def applied_variance(self, epsilon: float) -> float:
        """max(σ², 1) for a bound of the poster, whose conditions have σ ≥ 1; the exact noise has no such condition."""
        found = self.noise(epsilon)
        return found if self.exact else max(found, MIN_VARIANCE)

    def utility(self, epsilon: float) -> float:
        """The poster's bound at this noise, averaged over its clients; it is not proved where C < G, as here."""
        return kim_utility.printed_utility(self.applied_variance(epsilon) / CLIENTS, LEARNING)


@cache
def _exact(epsilon: float) -> float:
    """σ² where each example is clipped; it grows with the square of the sensitivity."""
    return kim_exact_noise.required_variance("per_example", POSTER.with_epsilon(epsilon))


CURVES = (
    Curve("proposed (Theorem 1)", lambda epsilon: noise_bound("theorem1", POSTER.with_epsilon(epsilon)).noise_variance),
    Curve("MA", lambda epsilon: noise_bound("moments", POSTER.with_epsilon(epsilon)).noise_variance),
    Curve("AC2", lambda epsilon: noise_bound("ac2", POSTER.with_epsilon(epsilon)).noise_variance),
    Curve("AC1, with its square", lambda epsilon: noise_bound("ac1", POSTER.with_epsilon(epsilon)).noise_variance),
    Curve("exact, examples clipped (C)", _exact, exact=True),
    Curve("exact, minibatch clipped (2C)", lambda epsilon: 4 * _exact(epsilon), exact=True),
)
PROPOSED, EXAMPLES, MINIBATCH = CURVES[0], CURVES[-2], CURVES[-1]
BY_MINIBATCH = tuple(curve for curve in CURVES if curve is not EXAMPLES)


def bits(epsilon: float) -> GradientBits:
    """Of one gradient at the proposed noise, for steps of 1."""
    return kim_gradient_bits.gradient_bits(DIMENSION, PROPOSED.applied_variance(epsilon))
