"""What paper 004 proves of sharpness-aware local training: term by term, and which terms bear on privacy."""

import math
from dataclasses import replace
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, Moderate, Multiplier, Rate, part
from discreet.privacy import accountant
from discreet.privacy.events import Event, sampled_gaussian

PRIVACY_NOTE = (
    "What is private is decided by the noise multiplier σ of updates clipped to C, by who is drawn and how often. "
    "Neither SAM's radius nor how flat a loss is, how much an update moves before its clip or how large the model is "
    "enters it"
)
HIDDEN_CONSTANTS_NOTE = (
    "Theorem 3 is an O(·): its hidden constants are taken as 1, so its terms can be compared, and are no bound"
)
THEOREM_1_ERROR = (
    "the proof compares two runs on the same examples, so it never sees the one that differs: a client with a single "
    "example exceeds it"
)
THEOREM_4_ERROR = (
    "it takes 2Lρ for the distance between two clients' gradients, which it isn't, and d times the noise that is added"
)


@part
class SamRun:
    """`cohort` of `clients` join a round, take `local_steps` by SAM, and send updates clipped to `clip_norm`.

    The mean of their updates has noise N(0, (noise_multiplier·clip_norm/cohort)²) in each of `dimension` coordinates,
    of which a `fraction` is kept.
    """

    clients: Count  # M
    cohort: Count  # m
    rounds: Count  # T
    local_steps: Count  # K
    radius: Moderate  # ρ
    clip_norm: Multiplier  # C
    noise_multiplier: Multiplier  # σ
    dimension: Count  # d
    fraction: Rate = 1.0  # p

    def __post_init__(self) -> None:
        if self.cohort > self.clients:
            raise InvalidInput(f"A cohort of {self.cohort} can't be drawn from {self.clients} clients.")

    @property
    def sampling_rate(self) -> float:
        return self.cohort / self.clients


@part
class LossConstants:
    """What the losses are like: all that the theorems ask for and nobody knows; each is 1 unless it is given.

    `clipped` and `unlike` are ᾱ and α̃: what the clip leaves of an update on average, and how far clients part in it.
    """

    smoothness: Multiplier = 1.0  # L
    local_deviation: Moderate = 1.0  # σ_l
    global_deviation: Moderate = 1.0  # σ_g
    gap: Multiplier = 1.0  # f(w¹) − f*
    clipped: Rate = 1.0  # ᾱ
    unlike: Moderate = 1.0  # α̃


class SensitivityBound(NamedTuple):
    """A number that was printed as a bound; `below` is the learning rate from which on it is none at all."""

    value: float
    below: float
    valid: bool
    reason: str


class ConvergenceTerms(NamedTuple):
    """Theorem 3's four terms: of the mean over rounds of ᾱ·‖∇f‖²."""

    optimisation: float
    variance: float
    clipping: float
    noise: float

    @property
    def total(self) -> float:
        return sum(self)


class Generalisation(NamedTuple):
    """Theorem 5: the empirical risk is off by less than `gap`, with probability `chance` at least."""

    epsilon: float  # ε'
    delta: float  # δ'
    gap: float
    chance: float
    valid: bool
    reason: str


def theorem_learning_rate(run: SamRun, landscape: LossConstants) -> float:
    """η = 1/(L√(KT)), the order of rate that Theorems 1 and 3 ask for. The paper's runs have 0.1."""
    return 1 / (landscape.smoothness * math.sqrt(run.local_steps * run.rounds))


def sgd_sensitivity(run: SamRun, landscape: LossConstants, learning_rate: float) -> SensitivityBound:
    """E S² ≤ 6η²σ_l²K/(1 − 3η²KL²), of an update by SGD before its clip (paper 004, Theorem 1). It doesn't hold."""
    moved = 6 * learning_rate**2 * landscape.local_deviation**2 * run.local_steps
    return _bound(moved, 3 * run.local_steps * landscape.smoothness**2, learning_rate)


def sam_sensitivity(run: SamRun, landscape: LossConstants, learning_rate: float) -> SensitivityBound:
    """E S² ≤ 6η²ρ²KL²(12K²L²η² + 10)/(1 − 2η²L²K), of an update by SAM before its clip (paper 004, Theorem 1).

    It doesn't hold: at ρ = 0, where SAM is SGD, it says that an update doesn't depend on the data at all. The last line
    of the proof prints it without the 6, which its own line before has.
    """
    k, smooth = run.local_steps, landscape.smoothness**2
    moved = 6 * learning_rate**2 * run.radius**2 * k * smooth * (12 * k**2 * smooth * learning_rate**2 + 10)
    return _bound(moved, 2 * k * smooth, learning_rate)


def mean_sensitivity(run: SamRun) -> float:
    """C/m: how far one client moves the mean of m clipped updates (paper 004, Lemma 1).

    For a client that comes or goes, with m a public number in both cases. One in another's place moves it by 2C/m.
    """
    return run.clip_norm / run.cohort


def convergence_terms(run: SamRun, landscape: LossConstants) -> ConvergenceTerms:
    """2L(f−f*)/√(KT) + L²σ_l²/(KT²) + Σ_t(ᾱ_tσ_g² + α̃_tL²)/T² + L²√T·σ²C²pd/(m²√K) (paper 004, Theorem 3).

    Each within an O(·). ᾱ_t and α̃_t are taken alike in all rounds. The noise's term grows with T: it can't converge.
    """
    smooth, rounds, steps = landscape.smoothness, run.rounds, run.local_steps
    clipping = landscape.clipped * landscape.global_deviation**2 + landscape.unlike * smooth**2
    noise = (run.noise_multiplier * run.clip_norm / run.cohort) ** 2 * run.fraction * run.dimension
    return ConvergenceTerms(
        optimisation=2 * smooth * landscape.gap / math.sqrt(steps * rounds),
        variance=(smooth * landscape.local_deviation) ** 2 / (steps * rounds**2),
        clipping=clipping / rounds,
        noise=smooth**2 * noise * math.sqrt(rounds / steps),
    )


def best_rounds(run: SamRun, landscape: LossConstants, most: int = 10**9) -> int:
    """The T at which Theorem 3's terms are least together: they are convex in log T."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        here, next_ = (convergence_terms(replace(run, rounds=each), landscape).total for each in (middle, middle + 1))
        low, high = (low, middle) if here <= next_ else (middle + 1, high)
    return low


def event(run: SamRun) -> Event:
    """What all rounds release of a client: T steps of the sampled Gaussian mechanism (paper 004, Theorem 2)."""
    return sampled_gaussian(run.noise_multiplier, run.sampling_rate, run.rounds)


def certified_epsilon(run: SamRun, delta: float) -> float:
    """The ε of Theorem 2, by our accountant; clients have to be drawn by secret coins for it."""
    return accountant.epsilon(event(run), delta)


def printed_round_epsilon(run: SamRun, landscape: LossConstants, delta: float) -> float:
    """ε̃ = ln((N−m)/N + (m/N)·exp(Lρ√(2 ln(1/δ))/(σCd) + 2(Lρ/(σCd))²)), of one round (paper 004, Theorem 4).

    Read off the end of its proof, (41), since the theorem's own line is damaged. It is no privacy: 2Lρ is how far SAM's
    looks at one gradient part, not two clients' gradients; no noise has d in it; (36) to (38) double the first part.
    """
    ratio = landscape.smoothness * run.radius / (run.noise_multiplier * run.clip_norm * run.dimension)
    return _sampled(run.sampling_rate, ratio * math.sqrt(-2 * math.log(delta)) + 2 * ratio**2)


def certified_round_epsilon(run: SamRun, delta: float) -> float:
    """ε of one round, by our accountant: what Theorem 4 is about."""
    return certified_epsilon(replace(run, rounds=1), delta)


def compose_rounds(epsilon: float, delta: float, rounds: int, sampling_rate: float) -> tuple[float, float]:
    """ε' = √(2T ln(1/δ)·ε̃²) + Tε̃(e^ε̃ − 1)/(e^ε̃ + 1), and a δ' for it (paper 004, Theorem 5).

    The paper's δ' is damaged. This is Kairouz, Oh & Viswanath's (2015, Thm 3.5): 1 − (1 − qδ)^T·(1 − δ).
    """
    whole = epsilon * math.sqrt(-2 * rounds * math.log(delta)) + rounds * epsilon * math.tanh(epsilon / 2)
    return whole, -math.expm1(rounds * math.log1p(-sampling_rate * delta) + math.log1p(-delta))


def generalisation_bound(epsilon: float, delta: float) -> Generalisation:
    """P[|R̂ − R| < 4ε'] ≥ 1 − (2e^(−1.7ε')δ'/ε')·ln(2/ε') for losses of at most 1 (paper 004, Theorem 5; He et al.)."""
    gap = 4 * epsilon
    if epsilon >= 0.25:
        return Generalisation(epsilon, delta, gap, 1.0, valid=False, reason="no two losses are further apart than 1")
    chance = 1 - 2 * math.exp(-1.7 * epsilon) * delta / epsilon * math.log(2 / epsilon) if epsilon > 0 else -math.inf
    reason = "" if chance > 0 else "a chance of at least 0 or less: says nothing"
    return Generalisation(epsilon, delta, gap, chance, valid=chance > 0, reason=reason)


def _bound(moved: float, factor: float, learning_rate: float) -> SensitivityBound:
    """moved/(1 − factor·η²), which is one only while that is above 0."""
    below, rest = 1 / math.sqrt(factor), 1 - factor * learning_rate**2
    if rest <= 0:
        reason = f"its denominator is {rest:.4g}: the learning rate has to be below {below:.4g}"
        return SensitivityBound(math.inf, below, valid=False, reason=reason)
    return SensitivityBound(moved / rest, below, valid=False, reason=THEOREM_1_ERROR)


def _sampled(rate: float, epsilon: float) -> float:
    """ln(1 − q + q·e^ε), for tiny ε and for large."""
    if epsilon > 1:
        return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))
    return math.log1p(rate * math.expm1(epsilon))
