"""DP-FedSAM (Shi et al. 2023): its theorems on sharpness-aware local training, term by term.

What is proved: Theorem 2, the ε of the sampled Gaussian mechanism, and Theorem 3, convergence up to hidden constants.
What is wrong: Theorem 1 compares two runs on the same examples; Theorem 4 takes 2Lρ for the distance of two clients'
gradients and multiplies the noise by d; Theorem 5 builds on Theorem 4, and its δ' is damaged in print.
What we use: our accountant for ε; the printed numbers beside it with the reason why they don't hold.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, Moderate, Multiplier, Rate, part
from discreet.privacy import accountant
from discreet.privacy.events import Event, sampled_gaussian

PRIVACY_NOTE = (
    "Privacy depends only on the noise multiplier σ of updates clipped to C, on the sampling rate and on the number of "
    "rounds. SAM's radius, the flatness of the loss, the length of an update before its clip and the size of the model "
    "don't enter it"
)
HIDDEN_CONSTANTS_NOTE = (
    "Theorem 3 is an O(·): with its hidden constants taken as 1, its terms can be compared, and are not a bound"
)
THEOREM_1_ERROR = (
    "the proof compares two runs on the same examples, so it never sees the example that differs: a client with a "
    "single example exceeds it"
)
THEOREM_4_ERROR = (
    "it takes 2Lρ for the distance between two clients' gradients, which is wrong, and d times the noise that is added"
)


@part
class SamRun:
    """A run of DP-FedSAM.

    The mean of the clipped updates has noise N(0, (noise_multiplier·clip_norm/cohort)²) in each coordinate.

    Attributes:
        clients: M.
        cohort: m, the clients expected in a round.
        rounds: T.
        local_steps: K, the SAM steps of a client in a round.
        radius: ρ of SAM.
        clip_norm: C, of an update.
        noise_multiplier: σ.
        dimension: d, the coordinates of the model.
        fraction: p, the part of the coordinates that is kept.
    """

    clients: Count
    cohort: Count
    rounds: Count
    local_steps: Count
    radius: Moderate
    clip_norm: Multiplier
    noise_multiplier: Multiplier
    dimension: Count
    fraction: Rate = 1.0

    def __post_init__(self) -> None:
        if self.cohort > self.clients:
            raise InvalidInput(f"A cohort of {self.cohort} can't be drawn from {self.clients} clients.")

    @property
    def sampling_rate(self) -> float:
        return self.cohort / self.clients


@part
class LossConstants:
    """Constants of the losses that the theorems need and nobody knows; 1 by default.

    Attributes:
        smoothness: L.
        local_deviation: σ_l, of the gradients within a client.
        global_deviation: σ_g, of the gradients between clients.
        gap: f(w¹) − f*, the first loss minus the best.
        clipped: ᾱ, the fraction of an update that remains after the clip, on average.
        unlike: α̃, how much clients differ in that fraction.
    """

    smoothness: Multiplier = 1.0
    local_deviation: Moderate = 1.0
    global_deviation: Moderate = 1.0
    gap: Multiplier = 1.0
    clipped: Rate = 1.0
    unlike: Moderate = 1.0


class SensitivityBound(NamedTuple):
    """A number printed as a bound; at a learning rate of `below` or more it is infinite. Fields are JSON keys."""

    value: float
    below: float
    valid: bool
    reason: str


class ConvergenceTerms(NamedTuple):
    """Theorem 3's four terms in the mean over rounds of ᾱ·‖∇f‖². Fields are JSON keys."""

    optimisation: float
    variance: float
    clipping: float
    noise: float

    @property
    def total(self) -> float:
        return sum(self)


class Generalisation(NamedTuple):
    """Theorem 5: the empirical risk is off by less than `gap`, with a probability of at least `chance`.

    The fields are JSON keys; `epsilon` and `delta` are ε' and δ'.
    """

    epsilon: float
    delta: float
    gap: float
    chance: float
    valid: bool
    reason: str


def theorem_learning_rate(run: SamRun, constants: LossConstants) -> float:
    """Return η = 1/(L√(KT)), the order of learning rate that Theorems 1 and 3 need. The paper's runs use 0.1."""
    return 1 / (constants.smoothness * math.sqrt(run.local_steps * run.rounds))


def sgd_sensitivity(run: SamRun, constants: LossConstants, learning_rate: float) -> SensitivityBound:
    """E S² ≤ 6η²σ_l²K/(1 − 3η²KL²), for an update by SGD before its clip (Theorem 1). It doesn't hold."""
    moved = 6 * learning_rate**2 * constants.local_deviation**2 * run.local_steps
    return _sensitivity_bound(moved, 3 * run.local_steps * constants.smoothness**2, learning_rate)


def sam_sensitivity(run: SamRun, constants: LossConstants, learning_rate: float) -> SensitivityBound:
    """E S² ≤ 6η²ρ²KL²(12K²L²η² + 10)/(1 − 2η²L²K), for an update by SAM before its clip (Theorem 1).

    It doesn't hold: at ρ = 0, where SAM is SGD, it says that an update doesn't depend on the data at all. The last line
    of the proof lacks the 6 of the line before.
    """
    k, smooth = run.local_steps, constants.smoothness**2
    moved = 6 * learning_rate**2 * run.radius**2 * k * smooth * (12 * k**2 * smooth * learning_rate**2 + 10)
    return _sensitivity_bound(moved, 2 * k * smooth, learning_rate)


def mean_sensitivity(run: SamRun) -> float:
    """Return C/m: how far one client moves the mean of m clipped updates (Lemma 1).

    For a client that is added or removed, where m is a public number. Replacing a client moves the mean by 2C/m.
    """
    return run.clip_norm / run.cohort


def convergence_terms(run: SamRun, constants: LossConstants) -> ConvergenceTerms:
    """2L(f−f*)/√(KT) + L²σ_l²/(KT²) + Σ_t(ᾱ_tσ_g² + α̃_tL²)/T² + L²√T·σ²C²pd/(m²√K) (Theorem 3).

    Each term is within an O(·). ᾱ_t and α̃_t are taken to be equal in all rounds. The noise term grows with T, so the
    bound can't converge.
    """
    smooth, rounds, steps = constants.smoothness, run.rounds, run.local_steps
    clipping = constants.clipped * constants.global_deviation**2 + constants.unlike * smooth**2
    noise = (run.noise_multiplier * run.clip_norm / run.cohort) ** 2 * run.fraction * run.dimension
    return ConvergenceTerms(
        optimisation=2 * smooth * constants.gap / math.sqrt(steps * rounds),
        variance=(smooth * constants.local_deviation) ** 2 / (steps * rounds**2),
        clipping=clipping / rounds,
        noise=smooth**2 * noise * math.sqrt(rounds / steps),
    )


def best_rounds(run: SamRun, constants: LossConstants, most: int = 10**9) -> int:
    """Return the T at which the sum of Theorem 3's terms is least: they are convex in log T."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        here, after = (convergence_terms(replace(run, rounds=n), constants).total for n in (middle, middle + 1))
        low, high = (low, middle) if here <= after else (middle + 1, high)
    return low


def event(run: SamRun) -> Event:
    """Return what all rounds reveal about a client: T steps of the sampled Gaussian mechanism (Theorem 2)."""
    return sampled_gaussian(run.noise_multiplier, run.sampling_rate, run.rounds)


def certified_epsilon(run: SamRun, delta: float) -> float:
    """Return the ε of Theorem 2 by our accountant; it assumes that clients are sampled in secret."""
    return accountant.epsilon(event(run), delta)


def printed_round_epsilon(run: SamRun, constants: LossConstants, delta: float) -> float:
    """ε̃ = ln((N−m)/N + (m/N)·exp(Lρ√(2 ln(1/δ))/(σCd) + 2(Lρ/(σCd))²)), of one round (Theorem 4).

    Taken from the end of its proof, (41), since the theorem's own line is damaged. It is not a privacy guarantee: 2Lρ
    is the distance of SAM's two evaluations of one gradient, not of two clients' gradients; no noise contains d; and
    (36) to (38) double the first part.
    """
    ratio = constants.smoothness * run.radius / (run.noise_multiplier * run.clip_norm * run.dimension)
    return _amplified_epsilon(run.sampling_rate, ratio * math.sqrt(-2 * math.log(delta)) + 2 * ratio**2)


def certified_round_epsilon(run: SamRun, delta: float) -> float:
    """Return the ε of one round by our accountant, the number that Theorem 4 is about."""
    return certified_epsilon(replace(run, rounds=1), delta)


def compose_rounds(epsilon: float, delta: float, rounds: int, sampling_rate: float) -> tuple[float, float]:
    """ε' = √(2T ln(1/δ)·ε̃²) + Tε̃(e^ε̃ − 1)/(e^ε̃ + 1), with its δ' (Theorem 5).

    The paper's δ' is damaged in print. This one is Kairouz, Oh & Viswanath's (2015, Thm 3.5): 1 − (1 − qδ)^T·(1 − δ).
    """
    total = epsilon * math.sqrt(-2 * rounds * math.log(delta)) + rounds * epsilon * math.tanh(epsilon / 2)
    return total, -math.expm1(rounds * math.log1p(-sampling_rate * delta) + math.log1p(-delta))


def generalisation_bound(epsilon: float, delta: float) -> Generalisation:
    """P[|R̂ − R| < 4ε'] ≥ 1 − (2e^(−1.7ε')δ'/ε')·ln(2/ε') for losses of at most 1 (Theorem 5; He et al.)."""
    gap = 4 * epsilon
    if epsilon >= 0.25:
        return Generalisation(epsilon, delta, gap, 1.0, valid=False, reason="losses differ by at most 1 anyway")
    chance = 1 - 2 * math.exp(-1.7 * epsilon) * delta / epsilon * math.log(2 / epsilon) if epsilon > 0 else -math.inf
    reason = "" if chance > 0 else "a probability of at least 0 or less: says nothing"
    return Generalisation(epsilon, delta, gap, chance, valid=chance > 0, reason=reason)


def _sensitivity_bound(moved: float, factor: float, learning_rate: float) -> SensitivityBound:
    """Return moved/(1 − factor·η²), which is finite only while the denominator is above 0."""
    below, denominator = 1 / math.sqrt(factor), 1 - factor * learning_rate**2
    if denominator <= 0:
        reason = f"its denominator is {denominator:.4g}: the learning rate has to be below {below:.4g}"
        return SensitivityBound(math.inf, below, valid=False, reason=reason)
    return SensitivityBound(moved / denominator, below, valid=False, reason=THEOREM_1_ERROR)


def _amplified_epsilon(rate: float, epsilon: float) -> float:
    """Return ln(1 − q + q·e^ε), accurate for tiny and for large ε."""
    if epsilon > 1:
        return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))
    return math.log1p(rate * math.expm1(epsilon))
