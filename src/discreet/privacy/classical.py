"""The accountants of older papers. Each is sound; only basic composition of a single step is tight."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from discreet.privacy import events, gaussian
from discreet.privacy.events import Step, scale_sensitivity, step_noise
from discreet.privacy.release import Relation

Steps: TypeAlias = Mapping[Step, int]

MOMENTS = range(1, 33)  # as in Abadi et al. 2016
LAST_DIGITS = 1e-12  # relative: what doubles lose in a step's own ε, by which the sum is rounded up
SLACKS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)  # shares of δ that advanced composition tries to spend on itself


class Method(Protocol):
    """An accountant that composes steps."""

    def supports(self, steps: Steps, relation: Relation) -> bool:
        """Return whether the method covers each of these steps."""

    def epsilon(self, steps: Steps, delta: float, relation: Relation) -> float:
        """Return ε of all the steps together at this δ; infinite if no finite one holds."""


@dataclass(frozen=True)
class BasicComposition:
    """Basic composition: the ε of all steps add up, and so do their δ.

    Guarantee: (ε, δ) holds for any adaptive sequence of the steps. δ is shared equally among the steps that need one.
    """

    def supports(self, steps: Steps, relation: Relation) -> bool:
        return all(_has_single(step, relation) for step in steps)

    def epsilon(self, steps: Steps, delta: float, relation: Relation) -> float:
        total = math.fsum(count * single for single, count in _singles(steps, delta, relation))
        return total * (1 + LAST_DIGITS)


@dataclass(frozen=True)
class AdvancedComposition:
    """Dwork, Rothblum & Vadhan 2010, with the constants of Kairouz, Oh & Viswanath 2015 (Thm 3.5), for unequal steps.

    Guarantee: ε = Σ ε_i tanh(ε_i/2) + √(2 ln(1/δ') Σ ε_i²) at δ' + Σ δ_i, or the plain sum where that is less. δ' is
    the best of a few shares of δ, fixed in advance; the rest is split equally among the steps that need one.
    """

    def supports(self, steps: Steps, relation: Relation) -> bool:
        return BasicComposition().supports(steps, relation)

    def epsilon(self, steps: Steps, delta: float, relation: Relation) -> float:
        basic = BasicComposition().epsilon(steps, delta, relation)
        return min([basic, *(self._with_slack(steps, delta, share * delta, relation) for share in SLACKS)])

    def _with_slack(self, steps: Steps, delta: float, slack: float, relation: Relation) -> float:
        singles = _singles(steps, delta - slack, relation)
        mean = math.fsum(count * single * math.tanh(single / 2) for single, count in singles)
        return mean + math.sqrt(-2 * math.log(slack) * math.fsum(count * single * single for single, count in singles))


@dataclass(frozen=True)
class MomentsAccountant:
    """Abadi et al. 2016: log-moments of the sampled Gaussian at λ = 1 … 32, added up, and the best tail bound.

    Guarantee: the moments are exact (the binomial sum, by Mironov, Talwar & Zhang 2019 the larger of both directions).
    Only λ up to 32 are tried, so little noise in many steps or a tiny δ at much noise cost more than with RDP.
    """

    def supports(self, steps: Steps, relation: Relation) -> bool:
        unsampled_only = relation == "replace"  # doubling bounds a step's (ε, δ) under sampling, not its moments
        return all(
            isinstance(step, events.GaussianNoise) or (_is_poisson_gaussian(step) and not unsampled_only)
            for step in steps
        )

    def epsilon(self, steps: Steps, delta: float, relation: Relation) -> float:
        if not steps:
            return 0.0
        return min((self._log_moment(steps, order, relation) - math.log(delta)) / order for order in MOMENTS)

    def _log_moment(self, steps: Steps, order: int, relation: Relation) -> float:
        return math.fsum(count * _log_moment(step, order, relation) for step, count in steps.items())


METHODS: Mapping[str, Method] = {
    "basic": BasicComposition(),
    "advanced": AdvancedComposition(),
    "moments": MomentsAccountant(),
}


def amplify(epsilon: float, sampling_rate: float) -> float:
    """Return ε of an ε-private step on a secret sample (Balle et al. 2018, Thm 8): log(1 + q(e^ε − 1))."""
    if epsilon < 30:
        return math.log1p(sampling_rate * math.expm1(epsilon))
    return epsilon + math.log(sampling_rate + (1 - sampling_rate) * math.exp(-epsilon))


def _singles(steps: Steps, delta: float, relation: Relation) -> list[tuple[float, int]]:
    """Return each distinct step's own ε and its count, when all steps together spend `delta`."""
    needing = sum(count for step, count in steps.items() if not isinstance(step_noise(step), events.LaplaceNoise))
    return [(_single(step, delta / max(needing, 1), relation), count) for step, count in steps.items()]


def _single(step: Step, delta: float, relation: Relation) -> float:
    """Return ε of one step at its share of δ.

    Replacing a unit is priced as twice the sensitivity. Under sampling that is not tight, but it holds: the two
    mixtures share the part without the unit, and advanced joint convexity (Balle et al. 2018, Thm 2) then asks
    for no more than the pairs (with, without) and (with, with another).
    """
    rate = step.sampling_rate if isinstance(step, events.PoissonSampled | events.SampledWithoutReplacement) else 1.0
    noise = scale_sensitivity(step_noise(step), 2.0) if relation == "replace" else step_noise(step)
    if isinstance(noise, events.LaplaceNoise):
        return amplify(1 / noise.noise_multiplier, rate)
    assert isinstance(noise, events.GaussianNoise)
    return amplify(gaussian.epsilon(1 / noise.noise_multiplier, delta / rate), rate)


def _log_moment(step: Step, order: int, relation: Relation) -> float:
    """log E[(P/Q)^λ] under P = (1−q) N(0, z²) + q N(1, z²), Q = N(0, z²): a binomial sum of positive terms."""
    noise = scale_sensitivity(step_noise(step), 2.0) if relation == "replace" else step_noise(step)
    assert isinstance(noise, events.GaussianNoise)
    exponent = 1 / (2 * noise.noise_multiplier**2)
    if not isinstance(step, events.PoissonSampled):
        return order * (order + 1) * exponent
    n, q = order + 1, step.sampling_rate
    excess = [
        math.log(math.comb(n, k)) + k * math.log(q) + (n - k) * math.log1p(-q) + _log_expm1(k * (k - 1) * exponent)
        for k in range(2, n + 1)
    ]
    largest = max(excess)  # the sum is 1 + Σ excess: a tiny q loses nothing
    log_excess = largest + math.log(math.fsum(math.exp(term - largest) for term in excess))
    return math.log1p(math.exp(log_excess)) if log_excess < 30 else log_excess + math.exp(-log_excess)


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))


def _has_single(step: Step, relation: Relation) -> bool:
    fits = relation == "replace" or not isinstance(step, events.SampledWithoutReplacement)
    uncovered = events.PoissonSampledGroup | events.TruncatedPoissonSampled | events.RandomAllocation
    fits = fits and not isinstance(step, uncovered)
    return fits and isinstance(step_noise(step), events.GaussianNoise | events.LaplaceNoise)


def _is_poisson_gaussian(step: Step) -> bool:
    return isinstance(step, events.PoissonSampled) and isinstance(step.event, events.GaussianNoise)
