"""How much noise paper 001's bounds ask for, as printed and untruncated, and where their conditions hold.

A client clips, adds N(0, C²σ²) to every coordinate and sends. The factor 4 that all four bounds share fits neither
sensitivity: Abadi et al. (2016, Lemma 3) give 2 where it is C (each example clipped) and 8 where it is 2C (the
minibatch clipped, as the paper does). What a σ truly costs is in exact_noise.py.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import optimize

from discreet.errors import InvalidInput
from discreet.part import Count, Positive, Probability, Rate, part
from discreet.privacy.wording import compact

PRINTED, UNTRUNCATED, CORRECTED = "printed", "untruncated", "corrected"
MIN_VARIANCE = 1.0  # σ ≥ 1 is a condition, so the paper hands out max(σ², 1)
MIN_RATE = 1e-12  # one of as many examples as there can be
GRID_POINTS = 2000  # of a grid in which the best order is looked for


@part
class Promise:
    """(ε, δ) for one example of a client, after `rounds` rounds that each draw it with probability `sampling_rate`."""

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
        """4q²T/(1 − q): what every bound begins with; nothing is enough at q = 1."""
        q = self.sampling_rate
        return 4 * q * q * self.rounds / (1 - q) if q < 1 else math.inf

    def at(self, epsilon: float) -> "Promise":
        return replace(self, epsilon=epsilon)


def theorem1(promise: Promise) -> float:
    """σ² ≥ 4q²T/(1−q)·[(2/ε²)·L + 1/ε − (2/ε²)·(ln(2L) + 1 − ln ε)] + O(ln²L/L) (paper 001, Theorem 1).

    As printed, with O(·) dropped, which asks for too little: `theorem1_untruncated` has what is left out.
    """
    inverse = 1 / promise.epsilon
    return promise.factor * inverse * (2 * inverse * (_constant(promise) + math.log(promise.epsilon)) + 1)


def theorem1_untruncated(promise: Promise) -> float:
    """The least σ² with min over α of αγ + (L − ln α)/(α − 1) + ln(1 − 1/α) ≤ ε, for γ = 2q²T/((1−q)σ²).

    What Theorem 1 approximates: Rényi divergences of the slope that its factor 4 stands for, converted as Asoodeh et
    al. (2020) and Balle et al. (2020, Thm 21) do. Solved for γ at each order; the largest decides.
    """
    log_inverse, epsilon = promise.log_inverse_delta, promise.epsilon

    def slope(log_excess: float) -> float:
        excess = math.exp(log_excess)  # α − 1
        added = (log_inverse - math.log1p(excess)) / excess - math.log1p(1 / excess)
        return (epsilon - added) / (1 + excess)

    grid = np.linspace(-20.0, 60.0, GRID_POINTS)
    best = float(grid[np.argmax([slope(at) for at in grid.tolist()])])
    around = (best - grid[1] + grid[0], best + grid[1] - grid[0])
    found = optimize.minimize_scalar(lambda at: -slope(at), bounds=around, method="bounded", options={"xatol": 1e-9})
    return promise.factor / 2 / -float(found.fun)


def moments(promise: Promise) -> float:
    """σ² ≥ 4q²T/(1−q)·[(2/ε²)·L + 1/ε + O(1/L)] (paper 001, MA), with O(·) dropped.

    The text that we have reads O(ln(1/δ)), which would be as large as the bound itself.
    """
    inverse = 1 / promise.epsilon
    return promise.factor * inverse * (2 * inverse * promise.log_inverse_delta + 1)


def moments_untruncated(promise: Promise) -> float:
    """σ² ≥ 4q²T/(1−q)·[(ε + 2L) + √((ε + 2L)² − ε²)]/(2ε²): min over α of αγ + L/(α − 1) is γ + 2√(γL)."""
    log_inverse, inverse = promise.log_inverse_delta, 1 / promise.epsilon
    middle = math.sqrt(log_inverse) * math.sqrt(log_inverse + promise.epsilon)
    return promise.factor * inverse * (inverse * (log_inverse + middle) + 0.5)


def ac1(promise: Promise) -> float:
    """σ² ≥ 4q²/(1−q)·(2/ε₀²)·ln(4/(5δ₀)), ε = ε₀√(2T·ln(1/δ')) + Tε₀(e^ε₀ − 1), δ' = Tδ₀ = δ/2 (paper 001, AC1).

    With its square restored: 2/ε₀ is printed (`ac1_printed`), by which AC1 would be the least of all, against the
    paper's own picture and its condition for one release.
    """
    return ac1_printed(promise) / _one_round(promise)


def ac1_printed(promise: Promise) -> float:
    """σ² ≥ 4q²/(1−q)·(2/ε₀)·ln(4/(5δ₀)): paper 001's AC1 letter by letter, without the square."""
    share = promise.delta / (2 * promise.rounds)
    return promise.factor / promise.rounds * 2 / _one_round(promise) * math.log(4 / (5 * share))


def ac2(promise: Promise) -> float:
    """σ² ≥ 4q²/(1−q)·8T·ln(e + ε/δ)/ε² (paper 001, AC2; Kairouz, Oh & Viswanath 2015)."""
    inverse = 1 / promise.epsilon
    return promise.factor * 8 * math.log(math.e + promise.epsilon / promise.delta) * inverse * inverse


FORMS: Mapping[str, Mapping[str, Callable[[Promise], float]]] = {  # the first of each is the bound; the rest, beside it
    "theorem1": {PRINTED: theorem1, UNTRUNCATED: theorem1_untruncated},
    "moments": {PRINTED: moments, UNTRUNCATED: moments_untruncated},
    "ac1": {CORRECTED: ac1, PRINTED: ac1_printed},
    "ac2": {PRINTED: ac2},
}


class NoiseBound(NamedTuple):
    """What one bound asks for: σ² before σ ≥ 1 is applied, in each of its forms, and whether its conditions hold."""

    noise_variance: float
    forms: dict[str, float]
    valid: bool
    reason: str  # why not

    @property
    def handed_out(self) -> float | None:
        """max(σ², 1): what the paper's clients add, and what its conditions, utility and rate are read at.

        Nothing where σ² is not positive: there is no such noise, and 1 would be made up.
        """
        return max(self.noise_variance, MIN_VARIANCE) if self.noise_variance > 0 else None


def noise_bound(name: str, promise: Promise) -> NoiseBound:
    """One of paper 001's bounds and whether Theorem 1's conditions hold at the noise that it hands out.

    They stand for all four: what the bounds share, their first factor, rests on them. Valid is not sound: a bound that
    drops O(·) terms is still asymptotic.
    """
    forms = {form: formula(promise) for form, formula in FORMS[name].items()}
    asked = next(iter(forms.values()))
    if not asked > 0:
        return NoiseBound(asked, forms, False, f"its printed form is not even positive (σ² = {compact(asked, 4)})")
    reasons = list(_broken(max(asked, MIN_VARIANCE), promise))
    if name == "theorem1" and promise.epsilon < (peak := turning_point(promise)):
        reasons.insert(0, f"below ε = {compact(peak, 3)} its printed form asks for less noise the smaller ε is")
    return NoiseBound(asked, forms, not reasons, "; ".join(reasons))


def min_epsilon(noise_variance: float, promise: Promise) -> float:
    """ε must be above 2L·max{δ, 1/(σ²·ln(1/(qσ)))} (paper 001, Theorem 1)."""
    hidden = promise.sampling_rate * math.sqrt(noise_variance)
    if hidden >= 1:
        return math.inf
    return 2 * promise.log_inverse_delta * max(promise.delta, 1 / (noise_variance * -math.log(hidden)))


def max_deviation(promise: Promise) -> float:
    """σ must be below 1/(16q) (paper 001, Theorem 1)."""
    return 1 / (16 * promise.sampling_rate)


def _broken(noise_variance: float, promise: Promise) -> list[str]:
    """Theorem 1's conditions that this σ² breaks, each as a reason."""
    found, most, sigma = [], max_deviation(promise), math.sqrt(noise_variance)
    if promise.sampling_rate == 1:
        found.append("its factor 4q²T/(1 − q) divides by 1 − q, which is 0 at q = 1")
    if not sigma < most:
        asked = f"q < 1/(16σ) means σ < {compact(most, 4)}"
        found.append(f"{asked}, and σ must be at least 1" if most <= 1 else f"{asked}, and σ is {compact(sigma, 4)}")
    elif not promise.epsilon > (least := min_epsilon(noise_variance, promise)):
        found.append(f"at σ² = {compact(noise_variance, 4)} its condition on ε needs more than {compact(least, 4)}")
    return found


def turning_point(promise: Promise) -> float:
    """Theorem 1's σ² rises with ε up to here, which is absurd: 4·(L − ln(2L) − 1 + ln ε) + ε = 2."""
    near = 0.5 - _constant(promise)  # where 4·(… + ln ε) is 2; ε takes at most 0.83 off its logarithm
    return math.exp(find_root(lambda x: 4 * (_constant(promise) + x) + math.exp(x) - 2, near - 2, near + 1))


def _constant(promise: Promise) -> float:
    """L − ln(2L) − 1."""
    return promise.log_inverse_delta - math.log(2 * promise.log_inverse_delta) - 1


def _one_round(promise: Promise) -> float:
    """ε₀ of AC1."""
    scale = math.sqrt(2 * promise.rounds * math.log(2 / promise.delta))

    def excess(epsilon: float) -> float:
        return epsilon * scale + promise.rounds * epsilon * math.expm1(epsilon) - promise.epsilon

    return find_root(excess, 0.0, min(2 * promise.epsilon / scale, 700.0))


def find_root(function: Callable[[float], float], low: float, high: float) -> float:
    found: float = optimize.brentq(function, low, high, xtol=1e-300, rtol=1e-14)
    return found
