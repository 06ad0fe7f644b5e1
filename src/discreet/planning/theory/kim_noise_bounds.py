"""Kim, Günlü & Schaefer 2021: how much local noise its four bounds ask for; Theorem 1, moments, AC1 and AC2.

A client clips, adds N(0, C²σ²) to every coordinate, and sends the result.

What is proved: nothing that holds as printed. What is wrong: the bounds drop O(·) terms and so ask for too little
noise; AC1 lacks a square; and the factor 4 that all four share fits neither sensitivity: Abadi et al. (2016, Lemma 3)
give 2 where it is C (each example clipped) and 8 where it is 2C (the minibatch clipped, as in the paper).
What we use: the printed forms with their conditions, the untruncated forms beside them, and the noise that our
accountant requires (kim_exact_noise.py).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from discreet.errors import InvalidInput
from discreet.part import Count, Positive, Probability, Rate, part
from discreet.privacy.wording import compact

PRINTED, UNTRUNCATED, CORRECTED = "printed", "untruncated", "corrected"
MIN_VARIANCE = 1.0  # σ ≥ 1 is a condition, so the paper's clients add max(σ², 1)
MIN_RATE = 1e-12  # one example out of the most that a client can have
GRID_POINTS = 2000  # of the grid that is searched for the best order


@part
class Promise:
    """(ε, δ) for one example of a client, after `rounds` rounds that sample it at `sampling_rate`."""

    epsilon: Positive
    delta: Probability
    sampling_rate: Rate
    rounds: Count

    def __post_init__(self) -> None:
        if self.sampling_rate < MIN_RATE:
            raise InvalidInput(
                f"A sampling rate must be at least {compact(MIN_RATE)}, and got {compact(self.sampling_rate)}."
            )

    @property
    def log_inverse_delta(self) -> float:
        """L = ln(1/δ)."""
        return -math.log(self.delta)

    @property
    def factor(self) -> float:
        """4q²T/(1 − q): the factor that all bounds share; infinite at q = 1."""
        q = self.sampling_rate
        return 4 * q * q * self.rounds / (1 - q) if q < 1 else math.inf

    def with_epsilon(self, epsilon: float) -> "Promise":
        """Return a copy with another ε."""
        return replace(self, epsilon=epsilon)


def theorem1(promise: Promise) -> float:
    """σ² ≥ 4q²T/(1−q)·[(2/ε²)·L + 1/ε − (2/ε²)·(ln(2L) + 1 − ln ε)] + O(ln²L/L) (Theorem 1).

    As printed, with O(·) dropped, which asks for too little noise: see `theorem1_untruncated`.
    """
    inverse = 1 / promise.epsilon
    return promise.factor * inverse * (2 * inverse * (_constant(promise) + math.log(promise.epsilon)) + 1)


def theorem1_untruncated(promise: Promise) -> float:
    """Return the least σ² with min over α of αγ + (L − ln α)/(α − 1) + ln(1 − 1/α) ≤ ε, for γ = 2q²T/((1−q)σ²).

    This is what Theorem 1 approximates: Rényi divergences with the slope of its factor 4, converted after Asoodeh et
    al. (2020) and Balle et al. (2020, Thm 21). It is solved for γ at each order, and the largest γ decides.
    """
    log_inverse, epsilon = promise.log_inverse_delta, promise.epsilon

    def slope(log_excess: float) -> float:
        excess = math.exp(log_excess)  # α − 1
        added = (log_inverse - math.log1p(excess)) / excess - math.log1p(1 / excess)
        return (epsilon - added) / (1 + excess)

    grid = np.linspace(-20.0, 60.0, GRID_POINTS)
    best = float(grid[np.argmax([slope(log_excess) for log_excess in grid.tolist()])])
    around = (best - grid[1] + grid[0], best + grid[1] - grid[0])
    return promise.factor / 2 / _maximum(slope, *around)


def moments(promise: Promise) -> float:
    """σ² ≥ 4q²T/(1−q)·[(2/ε²)·L + 1/ε + O(1/L)] (MA), with O(·) dropped.

    The text available to us has O(ln(1/δ)), which would be as large as the bound itself.
    """
    inverse = 1 / promise.epsilon
    return promise.factor * inverse * (2 * inverse * promise.log_inverse_delta + 1)


def moments_untruncated(promise: Promise) -> float:
    """σ² ≥ 4q²T/(1−q)·[(ε + 2L) + √((ε + 2L)² − ε²)]/(2ε²): min over α of αγ + L/(α − 1) is γ + 2√(γL)."""
    log_inverse, inverse = promise.log_inverse_delta, 1 / promise.epsilon
    middle = math.sqrt(log_inverse) * math.sqrt(log_inverse + promise.epsilon)
    return promise.factor * inverse * (inverse * (log_inverse + middle) + 0.5)


def ac1(promise: Promise) -> float:
    """σ² ≥ 4q²/(1−q)·(2/ε₀²)·ln(4/(5δ₀)), ε = ε₀√(2T·ln(1/δ')) + Tε₀(e^ε₀ − 1), δ' = Tδ₀ = δ/2 (AC1).

    With its square restored: the paper prints 2/ε₀ (`ac1_printed`), which would make AC1 the smallest bound of all and
    contradict the paper's own figure and its condition for one release.
    """
    return ac1_printed(promise) / _ac1_epsilon(promise)


def ac1_printed(promise: Promise) -> float:
    """σ² ≥ 4q²/(1−q)·(2/ε₀)·ln(4/(5δ₀)): AC1 exactly as printed, without the square."""
    share = promise.delta / (2 * promise.rounds)
    return promise.factor / promise.rounds * 2 / _ac1_epsilon(promise) * math.log(4 / (5 * share))


def ac2(promise: Promise) -> float:
    """σ² ≥ 4q²/(1−q)·8T·ln(e + ε/δ)/ε² (AC2; Kairouz, Oh & Viswanath 2015)."""
    inverse = 1 / promise.epsilon
    return promise.factor * 8 * math.log(math.e + promise.epsilon / promise.delta) * inverse * inverse


FORMS: Mapping[str, Mapping[str, Callable[[Promise], float]]] = {  # the first form of each is the bound
    "theorem1": {PRINTED: theorem1, UNTRUNCATED: theorem1_untruncated},
    "moments": {PRINTED: moments, UNTRUNCATED: moments_untruncated},
    "ac1": {CORRECTED: ac1, PRINTED: ac1_printed},
    "ac2": {PRINTED: ac2},
}


class NoiseBound(NamedTuple):
    """What one bound asks for.

    Attributes:
        noise_variance: σ² before σ ≥ 1 is applied.
        forms: σ² by each form of the bound.
        valid: Whether the conditions of Theorem 1 hold.
        reason: Why they don't.
    """

    noise_variance: float
    forms: dict[str, float]
    valid: bool
    reason: str

    @property
    def applied_variance(self) -> float | None:
        """max(σ², 1): what the paper's clients add, and where its conditions, utility and rate are computed.

        None where σ² is not positive: there is no such noise, and 1 would be an invention.
        """
        return max(self.noise_variance, MIN_VARIANCE) if self.noise_variance > 0 else None


def noise_bound(name: str, promise: Promise) -> NoiseBound:
    """Evaluate one bound, and whether Theorem 1's conditions hold at the noise that clients add.

    The conditions apply to all four bounds: their common factor rests on them. Valid does not mean sound: a bound
    that drops O(·) terms is still asymptotic.
    """
    forms = {form: formula(promise) for form, formula in FORMS[name].items()}
    variance = next(iter(forms.values()))
    if not variance > 0:
        reason = f"its printed form is not even positive (σ² = {compact(variance, 4)})"
        return NoiseBound(variance, forms, False, reason)
    reasons = list(_broken_conditions(max(variance, MIN_VARIANCE), promise))
    if name == "theorem1" and promise.epsilon < (peak := turning_point(promise)):
        reasons.insert(0, f"below ε = {compact(peak, 3)} its printed form asks for less noise the smaller ε is")
    return NoiseBound(variance, forms, not reasons, "; ".join(reasons))


def min_epsilon(noise_variance: float, promise: Promise) -> float:
    """Return 2L·max{δ, 1/(σ²·ln(1/(qσ)))}, above which ε must be (Theorem 1)."""
    hidden = promise.sampling_rate * math.sqrt(noise_variance)
    if hidden >= 1:
        return math.inf
    return 2 * promise.log_inverse_delta * max(promise.delta, 1 / (noise_variance * -math.log(hidden)))


def max_deviation(promise: Promise) -> float:
    """Return 1/(16q), below which σ must be (Theorem 1)."""
    return 1 / (16 * promise.sampling_rate)


def _broken_conditions(noise_variance: float, promise: Promise) -> list[str]:
    """Return a reason for each condition of Theorem 1 that this σ² breaks."""
    reasons, most, sigma = [], max_deviation(promise), math.sqrt(noise_variance)
    if promise.sampling_rate == 1:
        reasons.append("its factor 4q²T/(1 − q) divides by 1 − q, which is 0 at q = 1")
    if not sigma < most:
        limit = f"q < 1/(16σ) means σ < {compact(most, 4)}"
        reasons.append(f"{limit}, and σ must be at least 1" if most <= 1 else f"{limit}, and σ is {compact(sigma, 4)}")
    elif not promise.epsilon > (least := min_epsilon(noise_variance, promise)):
        reasons.append(f"at σ² = {compact(noise_variance, 4)} its condition on ε needs more than {compact(least, 4)}")
    return reasons


def turning_point(promise: Promise) -> float:
    """Return the ε up to which Theorem 1's σ² absurdly rises with ε: 4·(L − ln(2L) − 1 + ln ε) + ε = 2."""
    near = 0.5 - _constant(promise)  # where 4·(… + ln ε) is 2; adding ε lowers the logarithm by at most 0.83
    return math.exp(find_root(lambda x: 4 * (_constant(promise) + x) + math.exp(x) - 2, near - 2, near + 1))


def _constant(promise: Promise) -> float:
    """L − ln(2L) − 1."""
    return promise.log_inverse_delta - math.log(2 * promise.log_inverse_delta) - 1


def _ac1_epsilon(promise: Promise) -> float:
    """Return ε₀ of AC1, the ε of one round."""
    scale = math.sqrt(2 * promise.rounds * math.log(2 / promise.delta))

    def excess(epsilon: float) -> float:
        return epsilon * scale + promise.rounds * epsilon * math.expm1(epsilon) - promise.epsilon

    return find_root(excess, 0.0, min(2 * promise.epsilon / scale, 700.0))


def find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where the function, which changes its sign between `low` and `high`, is zero, to the last digit."""
    sign = 1 if function(low) < function(high) else -1
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if sign * function(middle) > 0 else (middle, high)
    return high


def _maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the largest value of a function that rises and then falls between `low` and `high` (golden section)."""
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-9:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if function(left) > function(right) else (left, high)
    return function((low + high) / 2)
