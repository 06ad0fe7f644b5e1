"""The white-box estimator: how far one entry of a canary moves what is seen, in deviations of the noise."""

import math
from dataclasses import dataclass

import numpy as np

from discreet.audit.estimators.deviation_limit import normality_p_value, upper_deviation
from discreet.audit.estimators.estimate import Array, Estimate, check_levels
from discreet.audit.estimators.score_pairs import Design, Noise
from discreet.errors import InvalidInput
from discreet.privacy import gaussian

NAME = "gaussian"
NOT_NORMAL = 1e-4  # a p-value below which the noise is not taken for what it should be
CURVE_DELTAS = tuple(10.0**-exponent for exponent in range(1, 10, 2))
ASSUMES = "the noise that is seen is independent and {noise}, and every entry of a canary adds the same to it"


@dataclass(frozen=True)
class SeenEntries:
    """What is seen of canaries in single rounds, and how often each had entered: the auditor knows, the attacker not.

    Attributes:
        values: What is seen along the canary's direction, x.
        counts: Its entries K: 0 for an absent canary, or −K for one that was replaced by its opposite.
        canaries: Number of canaries.
        present: Number of canaries that were present.
    """

    values: Array
    counts: Array
    canaries: int
    present: int


def estimate_by_gaussian(seen: SeenEntries, design: Design, *, delta: float, confidence: float = 0.95) -> Estimate:
    """Return a lower confidence bound on ε from what is seen in single rounds.

    x = c + a·K + s·N(0, 1) is a regression on the known K. The deviation s is below its χ² limit with probability
    1 − α/4; given s, the slope is normal with variance s²/Σ(K − K̄)², so a/s is above the smallest value that the slope
    doesn't reject with probability 1 − 3α/4. An attacker doesn't know K: ε follows from a/s by the two distributions of
    x that the secret draws of `design` leave, composed over its rounds. For a constant K this is μ-GDP (Dong, Roth & Su
    2019). Laplace noise has the limits of the central limit theorem.

    Guarantee: if what `assumes` says is true, the bound exceeds the ε of this attack with probability at most
    1 − confidence. If the noise doesn't look as it should, the bound is 0.

    Args:
        seen: What is seen of the canaries.
        design: How a canary enters the rounds, and the kind of noise.
        delta: The δ of the bound.
        confidence: The probability that the bound holds.
    """
    check_levels(delta, confidence)
    centred = seen.counts - seen.counts.mean() if len(seen.counts) else seen.counts
    spread = float((centred**2).sum())
    signal, p_value, slope, deviation, reach = 0.0, 1.0, 0.0, None, None
    if spread > 0 and len(seen.values) > 2:
        slope = float((centred * seen.values).sum()) / spread
        residuals = seen.values - seen.values.mean() - slope * centred
        deviation = float(np.sqrt((residuals**2).sum() / (len(residuals) - 2)))
        if deviation <= 1e-9 * max(1.0, abs(slope)):
            raise InvalidInput(
                "What is seen must carry noise, and it carries none: nothing is private.",
                fix="Audit an experiment with privacy.",
            )
        p_value = normality_p_value(as_normal(residuals / deviation, design.noise))
        if p_value >= NOT_NORMAL:
            signal = _smallest_signal(residuals, slope, spread, design, 1 - confidence)
            room = gaussian.upper_quantile(math.log(1 - confidence)) / math.sqrt(spread)
            reach = design.epsilon(max(0.0, slope / deviation + room), delta)
    return Estimate(
        estimator=NAME,
        lower_bound=design.epsilon(signal, delta),
        confidence=confidence,
        delta=delta,
        canaries=seen.canaries,
        present=seen.present,
        assumes=ASSUMES.format(noise="normal" if design.noise == "gaussian" else "Laplace"),
        details={
            "signal": signal,
            "slope": slope,
            "deviation": deviation,
            "observations": len(seen.values),
            "noise_p_value": p_value,
            "looks_as_stated": p_value >= NOT_NORMAL,
            "reach": reach,  # about the most that more observations could bring the bound up to
        },
    )


def measured_points(estimate: Estimate, design: Design) -> tuple[tuple[float, float], ...]:
    """Return points of the measured curve: they all follow from one signal, so they hold together."""
    signal = estimate.details["signal"]
    if signal <= 0:
        return ()
    return tuple((design.epsilon(signal, each), each) for each in sorted({estimate.delta, *CURVE_DELTAS}) if each > 0)


def as_normal(standard: Array, noise: Noise) -> Array:
    """Return numbers that are normal if `standard` is noise of deviation 1 of this kind."""
    if noise == "gaussian":
        return standard
    tails = -np.abs(standard) * math.sqrt(2) - math.log(2)  # the logarithm of a Laplace tail
    return np.array([math.copysign(gaussian.upper_quantile(tail), x) for tail, x in zip(tails, standard, strict=True)])


def _smallest_signal(residuals: Array, slope: float, spread: float, design: Design, error: float) -> float:
    """Return the smallest a/s that this slope doesn't reject; at least 0."""
    degrees = len(residuals) - 2
    if design.noise == "gaussian":
        deviation = upper_deviation(float((residuals**2).sum()), degrees, error / 4)
    else:  # a Laplace variable has kurtosis 6, so its square has variance 5s⁴
        room = 1 - gaussian.upper_quantile(math.log(error / 4)) * math.sqrt(5 / degrees)
        if room <= 0:
            return 0.0
        deviation = math.sqrt(float((residuals**2).sum()) / degrees / room)
    return max(0.0, slope / deviation - gaussian.upper_quantile(math.log(0.75 * error)) / math.sqrt(spread))
