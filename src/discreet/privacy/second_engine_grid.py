"""The grid on which dp-accounting's privacy-loss distributions fit into memory, and what rounding onto it adds to ε."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.privacy import events
from discreet.privacy.dp_accounting_events import binomial_chances
from discreet.privacy.events import Step, step_noise
from discreet.privacy.truncated_sampling import truncation_cases

FINEST, COARSEST = 1e-6, 1e-4  # of the grid's interval: finer drowns in its rounding, coarser shows in the third digit
MOST_POINTS = 250_000  # of one step's grid, which is built point by point: about 3 s; a composition's may have 8 times
MOST_REPEATS = 10**6  # of a small grid: it first raises that to their power, digit by digit, which takes 3 s; 90 at 1e7
GROUP_FACTOR = 40  # a point takes so many times as long for a group: its grid is so many times as coarse
TRUNCATED_FACTOR = 4  # rare losses of a full batch reach so far: their grid may be coarser
SMALL_GRID = 2_000  # points: it takes this way below 1,000, of which we know no more than about how many there are


@dataclass(frozen=True)
class Grid:
    """Where dp-accounting would put the losses: the interval, how many points, what that adds to ε, and its cost."""

    interval: float
    points: float
    tolerance: float
    repeats: int
    slow: bool


def choose_grid(counts: dict[Step, int], *, replace: bool) -> Grid:
    """Return the interval at which composed losses fit `MOST_POINTS`, and what rounding onto it may add to ε.

    Splitting a loss between its two neighbours keeps e^loss, and adds a variance of at most h²/4 and of at most
    h·|loss|, and half of it to the mean; a composition's ε is below its mean plus 8 deviations at any δ asked here.
    """
    losses = [_losses(step, count, replace=replace) for step, count in counts.items()]
    variance = math.fsum(repeats * deviation**2 for _, deviation, _, repeats in losses)
    reach = max(span for span, _, _, _ in losses)
    points = max(reach, (sum(span for span, _, _, _ in losses) + 18 * math.sqrt(variance)) / 8)
    finest = max(FINEST, min(deviation for _, deviation, _, _ in losses) / 20)
    factor = coarseness(counts)
    truncates = any(isinstance(step, events.TruncatedPoissonSampled) for step in counts)
    coarsest = COARSEST * factor * (TRUNCATED_FACTOR if truncates else 1)
    fitting = min(points * factor / MOST_POINTS, coarsest * max(1.0, math.sqrt(variance)))
    interval = max(min(COARSEST, finest), fitting)
    added = math.fsum(repeats * min(interval**2 / 4, interval * size) for _, _, size, repeats in losses)
    answers = sum(count for step, count in counts.items() if isinstance(step, events.RandomisedResponse))
    tolerance = interval * (1 + answers) + added / 2 + 8 * (math.sqrt(variance + added) - math.sqrt(variance))
    slow = any(repeats > MOST_REPEATS and span < SMALL_GRID * interval for span, _, _, repeats in losses)
    return Grid(interval, points / interval, tolerance, max(repeats for _, _, _, repeats in losses), slow)


def coarseness(counts: dict[Step, int]) -> int:
    return GROUP_FACTOR if any(isinstance(step, events.PoissonSampledGroup) for step in counts) else 1


def _losses(step: Step, count: int, *, replace: bool) -> tuple[float, float, float, int]:
    """Return the span of one step's privacy loss, its deviation, its mean size, and how often its grid is composed."""
    noise = step_noise(step)
    if isinstance(step, events.RandomisedResponse):  # its losses are rounded up, which `choose_grid` counts
        return 2 * step.epsilon, step.epsilon, step.epsilon, count
    if isinstance(step, events.TruncatedPoissonSampled):
        return _truncated_losses(step, count, replace=replace)
    if isinstance(noise, events.LaplaceNoise):
        return 2 / noise.noise_multiplier, 1 / noise.noise_multiplier, 1 / noise.noise_multiplier, count
    assert isinstance(noise, events.GaussianNoise)
    if not isinstance(
        step, events.PoissonSampled | events.PoissonSampledGroup
    ):  # its repetitions are one Gaussian, there as here
        mu = (2 if replace else 1) * math.sqrt(count) / noise.noise_multiplier
        return mu * mu / 2 + 20 * mu, mu, mu, 1  # its grid starts at 0
    z, size = noise.noise_multiplier, step.group_size if isinstance(step, events.PoissonSampledGroup) else 1
    chances = binomial_chances(step.sampling_rate, size)
    x = np.linspace(-10 * z, size + 10 * z, 4001)
    density = sum(chance * np.exp(-(((x - j) / z) ** 2) / 2) for j, chance in enumerate(chances))
    density /= density.sum()
    loss = _log_mixture(x, z, chances) - (_log_mixture(-x, z, chances) if replace else 0.0)
    deviation = math.sqrt(float(density @ (loss - density @ loss) ** 2))
    return float(np.ptp(loss)), deviation, float(density @ np.abs(loss)), count


def _truncated_losses(
    step: events.TruncatedPoissonSampled, count: int, *, replace: bool
) -> tuple[float, float, float, int]:
    """Return the same for both cases of a truncated sample together, each as often as it happens."""
    cases = truncation_cases(step, "replace" if replace else "zero_out")
    each = [_losses(case.step, count, replace=case.relation == "replace") for case in cases]
    chances = [case.probability for case in cases]
    variance = math.fsum(chance * deviation**2 for chance, (_, deviation, _, _) in zip(chances, each, strict=True))
    size = math.fsum(chance * mean for chance, (_, _, mean, _) in zip(chances, each, strict=True))
    return max(span for span, _, _, _ in each), math.sqrt(variance), size, count


def _log_mixture(x: Any, z: float, chances: Any) -> Any:
    logs = [math.log(chance) + (2 * x - j) * j / (2 * z * z) for j, chance in enumerate(chances) if chance > 0]
    return np.logaddexp.reduce(logs)
