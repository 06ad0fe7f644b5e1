"""dp-accounting as an independent engine for our events. Only this file imports it, and only when it is used.

Importing it takes 0.9 s, and some events would take it gigabytes: those are declined with a reason.
"""

import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from discreet.errors import Unsupported
from discreet.extras import is_installed
from discreet.privacy import events
from discreet.privacy.events import (
    BestOf,
    Event,
    Step,
    noisy_steps,
    replace_noise,
    scale_sensitivity,
    step_noise,
    steps,
)
from discreet.privacy.noise_pairs import log_binomial
from discreet.privacy.release import Relation
from discreet.privacy.trial_count import TruncatedNegativeBinomial
from discreet.words import fill

FINEST, COARSEST = 1e-6, 1e-4  # of the grid's interval: finer drowns in its rounding, coarser shows in the third digit
MOST_POINTS = 250_000  # of one step's grid, which is built point by point: about 3 s; a composition's may have 8 times
MOST_REPEATS = 10**6  # of a small grid: it first raises that to their power, digit by digit, which takes 3 s; 90 at 1e7
GROUP_FACTOR = 40  # a point takes so many times as long for a group: its grid is so many times as coarse
SMALL_GRID = 2_000  # points: it takes this way below 1,000, of which we know no more than about how many there are
SMALLEST_DELTA = 1e-13  # for each repetition: its compositions cut tails of 1e-15 and round by 1e-16 each
LARGEST_EPSILON = 700.0  # above, its e^−loss underflows: it then counts P[loss > ε], which is more than δ
ORDERS = [1 + x / 10 for x in range(1, 100)] + [float(n) for n in (*range(11, 64), 80, 96, 128, 160, 200, 256)]


@dataclass(frozen=True)
class SecondOpinion:
    """The ε of the other engine, or None and the reason.

    `same_method` means that it computes the same quantity as our PLD, so that its value exceeds ours by no more than
    `tolerance`; otherwise it is only an upper bound.
    """

    engine: str
    epsilon: float | None
    reason: str = ""
    tolerance: float = 0.0
    same_method: bool = False


@lru_cache(maxsize=1024)
def epsilon(event: Event, delta: float, relation: Relation = "add_or_remove") -> SecondOpinion:
    """Return dp-accounting's ε at this δ, by PLD where it has one for the event, else by RDP."""
    if not is_installed("dp_accounting"):
        return SecondOpinion("dp-accounting", None, fill("second.not_installed"))
    engine = f"dp-accounting {version('dp-accounting')}"
    reason = unsupported_reason(event, relation)
    if reason is not None:
        return SecondOpinion(engine, None, reason)
    if any(
        isinstance(step_noise(step), events.DiscreteGaussianNoise | BestOf) or _is_fixed_size(step)
        for step in steps(event)
    ):
        return _by_rdp(event, delta, relation, f"{engine} RDP")
    return _by_pld(event, delta, relation, f"{engine} PLD")


def unsupported_reason(event: Event, relation: Relation = "add_or_remove") -> str | None:
    """Return None if dp-accounting covers the event, else the reason why it doesn't."""
    all_steps = list(steps(event))
    for step in all_steps:
        if isinstance(step, BestOf) and (reason := _unsupported_selection(step, relation)) is not None:
            return reason
        noise = step_noise(step)
        if isinstance(noise, events.SkellamNoise):
            return fill("second.skellam")
        if isinstance(noise, events.DistributedDiscreteGaussianNoise):
            return fill("second.discrete_sums")
        if isinstance(noise, events.DiscreteGaussianNoise) and noise is not step:
            return fill("second.sampled_discrete")
        if isinstance(step, events.PoissonSampledGroup) and not isinstance(noise, events.GaussianNoise):
            return fill("second.group_noise")
        if _is_fixed_size(step) and not isinstance(noise, events.GaussianNoise):
            return fill("second.fixed_size_noise")
        if _is_fixed_size(step) and relation != "replace":
            return fill("second.fixed_size_relation")
    poisson = [step for step in all_steps if isinstance(step, events.PoissonSampled)]
    only_rdp = [
        step for step in all_steps if _is_fixed_size(step) or isinstance(step, events.DiscreteGaussianNoise | BestOf)
    ]
    if poisson and any(map(_is_fixed_size, only_rdp)):
        return fill("second.mixed_sampling")
    if only_rdp and any(isinstance(step.event, events.LaplaceNoise) for step in poisson):
        return fill("second.sampled_laplace")
    if (
        poisson
        and relation == "replace"
        and not all(isinstance(step_noise(step), events.GaussianNoise) for step in all_steps)
    ):
        # Doubling the sensitivity is no way out: replacing under sampling is not dominated by the add-or-remove pair.
        return fill("second.sampled_replace")
    return None


def _unsupported_selection(step: BestOf, relation: Relation) -> str | None:
    """Return why dp-accounting's RDP does not cover the best of several trials; None if it does."""
    if len(step.trials) > 1:
        return fill("second.several_trials")
    if isinstance(step.count, TruncatedNegativeBinomial) and step.count.shape < 0:
        return fill("second.negative_shape")
    sampled = [inner for inner in noisy_steps(step) if isinstance(inner, events.Sampled)]
    if any(not isinstance(inner, events.PoissonSampled) for inner in sampled) or (sampled and relation == "replace"):
        return fill("second.sampled_trials")
    if any(isinstance(inner.event, events.LaplaceNoise) for inner in sampled):
        return fill("second.sampled_laplace")
    return unsupported_reason(step.trials[0], relation)


def to_dp_accounting(event: Event) -> Any:
    """Convert the event to dp-accounting's classes."""
    from dp_accounting import ComposedDpEvent, SelfComposedDpEvent

    return ComposedDpEvent([SelfComposedDpEvent(_to_their_step(step), count) for step, count in steps(event).items()])


def _to_their_step(step: Step) -> Any:
    import dp_accounting as theirs

    match step:
        case events.GaussianNoise():
            return theirs.GaussianDpEvent(step.noise_multiplier)
        case events.LaplaceNoise():
            return theirs.LaplaceDpEvent(step.noise_multiplier)
        case events.DiscreteGaussianNoise():
            return theirs.ZCDpEvent(step.l2_sensitivity**2 / (2 * step.variance))
        case events.PoissonSampled():
            return theirs.PoissonSampledDpEvent(step.sampling_rate, _to_their_step(step.event))
        case events.PoissonSampledGroup(
            sampling_rate=rate, group_size=size, event=events.GaussianNoise(noise_multiplier=z)
        ):
            return theirs.dp_event.MixtureOfGaussiansDpEvent(
                z, list(range(size + 1)), _binomial_chances(rate, size).tolist()
            )
        case events.SampledWithoutReplacement():
            return theirs.SampledWithoutReplacementDpEvent(step.population, step.cohort, _to_their_step(step.event))
        case events.SkellamNoise():
            raise Unsupported("dp-accounting has no Skellam noise.", fix="Use our RDP, or the numerical certificate.")
        case events.DistributedDiscreteGaussianNoise():
            raise Unsupported("dp-accounting has no sums of discrete Gaussians.", fix="Use our RDP.")
        case events.PoissonSampledGroup():
            raise Unsupported("dp-accounting has groups in Gaussian noise only.", fix="Use our RDP.")
        case BestOf(count=count):
            shape = count.shape if isinstance(count, TruncatedNegativeBinomial) else math.inf
            return theirs.dp_event.RepeatAndSelectDpEvent(to_dp_accounting(step.trials[0]), count.mean, shape)


def _by_pld(event: Event, delta: float, relation: Relation, engine: str) -> SecondOpinion:
    counts = steps(event)
    if not counts:
        return SecondOpinion(engine, 0.0, same_method=True)
    native = relation == "replace" and any(isinstance(step, events.PoissonSampled) for step in counts)
    if relation == "replace" and not native:
        counts = {_double_sensitivity(step): count for step, count in counts.items()}
    grid = _grid(counts, replace=native)
    if grid.points > 1.01 * MOST_POINTS / _coarseness(counts):
        return SecondOpinion(engine, None, fill("second.large_grid", points=f"{grid.points:.0e}"))
    if grid.slow:
        return SecondOpinion(engine, None, fill("second.slow", repeats=f"{grid.repeats:,}"))
    if delta < SMALLEST_DELTA * grid.repeats:
        return SecondOpinion(engine, None, fill("second.small_delta", delta=f"{delta:g}"))

    from dp_accounting.pld import PLDAccountant

    value = _ask_epsilon(lambda: PLDAccountant(_relation(replace=native), grid.interval), counts, delta)
    if not math.isfinite(value):
        return SecondOpinion(engine, None, fill("second.truncated"))
    if grid.tolerance > 0.05 * max(1.0, value):
        return SecondOpinion(engine, None, fill("second.coarse_grid", tolerance=f"{grid.tolerance:.2g}"))
    if value > LARGEST_EPSILON:
        return SecondOpinion(engine, value, fill("second.large_epsilon", epsilon=f"{LARGEST_EPSILON:g}"))
    rounding = 0.01 * SMALLEST_DELTA * grid.repeats / delta
    return SecondOpinion(engine, value, tolerance=grid.tolerance + rounding, same_method=True)


def _by_rdp(event: Event, delta: float, relation: Relation, engine: str) -> SecondOpinion:
    """Replacing doubles the sensitivity by our own hand: dp-accounting's RDP reads z as noise over the *whole* move."""
    from dp_accounting.rdp import RdpAccountant

    counts = steps(event)
    fixed_size = any(map(_is_fixed_size, counts))
    if relation == "replace":
        counts = {_double_sensitivity(step): count for step, count in counts.items()}
    value = _ask_epsilon(lambda: RdpAccountant(ORDERS, _relation(replace=fixed_size)), counts, delta)
    if not math.isfinite(value):
        return SecondOpinion(engine, None, fill("second.no_order"))
    return SecondOpinion(engine, value, fill("second.only_rdp"))


def _ask_epsilon(accountant: Callable[[], Any], counts: dict[Step, int], delta: float) -> float:
    with _silence_warnings(), np.errstate(all="ignore"):
        asked = accountant()
        try:
            for step, count in counts.items():
                asked.compose(_to_their_step(step), count)
            return float(asked.get_epsilon(delta))
        except (ValueError, OverflowError):  # too little noise for its doubles
            return math.inf


@contextmanager
def _silence_warnings() -> Any:
    """Silence dp-accounting's warnings about orders that it leaves out, which are harmless."""
    from absl import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.FATAL)
    try:
        yield
    finally:
        logging.set_verbosity(before)


@dataclass(frozen=True)
class _Grid:
    interval: float
    points: float
    tolerance: float
    repeats: int
    slow: bool


def _grid(counts: dict[Step, int], *, replace: bool) -> _Grid:
    """Return the interval at which composed losses fit `MOST_POINTS`, and what rounding onto it may add to ε.

    Splitting a loss between its two neighbours keeps e^loss, and adds a variance of at most h²/4 and of at most
    h·|loss|, and half of it to the mean; a composition's ε is below its mean plus 8 deviations at any δ asked here.
    """
    losses = [_losses(step, count, replace=replace) for step, count in counts.items()]
    variance = math.fsum(repeats * deviation**2 for _, deviation, _, repeats in losses)
    reach = max(span for span, _, _, _ in losses)
    points = max(reach, (sum(span for span, _, _, _ in losses) + 18 * math.sqrt(variance)) / 8)
    finest = max(FINEST, min(deviation for _, deviation, _, _ in losses) / 20)
    factor = _coarseness(counts)
    fitting = min(points * factor / MOST_POINTS, COARSEST * factor * max(1.0, math.sqrt(variance)))
    interval = max(min(COARSEST, finest), fitting)
    added = math.fsum(repeats * min(interval**2 / 4, interval * size) for _, _, size, repeats in losses)
    tolerance = interval + added / 2 + 8 * (math.sqrt(variance + added) - math.sqrt(variance))
    slow = any(repeats > MOST_REPEATS and span < SMALL_GRID * interval for span, _, _, repeats in losses)
    return _Grid(interval, points / interval, tolerance, max(repeats for _, _, _, repeats in losses), slow)


def _coarseness(counts: dict[Step, int]) -> int:
    return GROUP_FACTOR if any(isinstance(step, events.PoissonSampledGroup) for step in counts) else 1


def _losses(step: Step, count: int, *, replace: bool) -> tuple[float, float, float, int]:
    """Return the span of one step's privacy loss, its deviation, its mean size, and how often its grid is composed."""
    noise = step_noise(step)
    if isinstance(noise, events.LaplaceNoise):
        return 2 / noise.noise_multiplier, 1 / noise.noise_multiplier, 1 / noise.noise_multiplier, count
    assert isinstance(noise, events.GaussianNoise)
    if not isinstance(
        step, events.PoissonSampled | events.PoissonSampledGroup
    ):  # its repetitions are one Gaussian, there as here
        mu = (2 if replace else 1) * math.sqrt(count) / noise.noise_multiplier
        return mu * mu / 2 + 20 * mu, mu, mu, 1  # its grid starts at 0
    z, size = noise.noise_multiplier, step.group_size if isinstance(step, events.PoissonSampledGroup) else 1
    chances = _binomial_chances(step.sampling_rate, size)
    x = np.linspace(-10 * z, size + 10 * z, 4001)
    density = sum(chance * np.exp(-(((x - j) / z) ** 2) / 2) for j, chance in enumerate(chances))
    density /= density.sum()
    loss = _log_mixture(x, z, chances) - (_log_mixture(-x, z, chances) if replace else 0.0)
    deviation = math.sqrt(float(density @ (loss - density @ loss) ** 2))
    return float(np.ptp(loss)), deviation, float(density @ np.abs(loss)), count


def _binomial_chances(rate: float, size: int) -> Any:
    """Return the chance that 0, 1, … or all of so many are drawn."""
    chances = np.exp(log_binomial(size, np.arange(size + 1.0), rate))
    return chances / chances.sum()


def _log_mixture(x: Any, z: float, chances: Any) -> Any:
    logs = [math.log(chance) + (2 * x - j) * j / (2 * z * z) for j, chance in enumerate(chances) if chance > 0]
    return np.logaddexp.reduce(logs)


def _relation(*, replace: bool) -> Any:
    from dp_accounting import NeighboringRelation

    return NeighboringRelation.REPLACE_ONE if replace else NeighboringRelation.ADD_OR_REMOVE_ONE


def _double_sensitivity(step: Step) -> Step:
    return replace_noise(step, scale_sensitivity(step_noise(step), 2.0))


def _is_fixed_size(step: Step) -> bool:
    return isinstance(step, events.SampledWithoutReplacement)
