"""dp-accounting as an independent engine for our events. Only this file asks it, and only when it is used.

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

from discreet.extras import is_installed
from discreet.privacy import events
from discreet.privacy.dp_accounting_events import step_to_dp_accounting
from discreet.privacy.events import (
    BestOf,
    Event,
    RandomisedResponse,
    Step,
    noisy_steps,
    replace_noise,
    scale_sensitivity,
    step_noise,
    steps,
)
from discreet.privacy.release import Relation
from discreet.privacy.second_engine_grid import MOST_POINTS, choose_grid, coarseness
from discreet.privacy.trial_count import TruncatedNegativeBinomial
from discreet.words import fill

SMALLEST_DELTA = 1e-13  # for each repetition: its compositions cut tails of 1e-15 and round by 1e-16 each
MOST_ANSWERS = 200  # of randomised response, which it has to compose one by one: about 3 s
LARGEST_EPSILON = 700.0  # above, its e^−loss underflows: it then counts P[loss > ε], which is more than δ
ORDERS = [1 + x / 10 for x in range(1, 100)] + [float(n) for n in (*range(11, 64), 80, 96, 128, 160, 200, 256)]
NATIVE_REPLACE = (events.PoissonSampled, events.TruncatedPoissonSampled, RandomisedResponse)  # not by doubling


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
    if any(map(_has_only_rdp, steps(event))):
        return _by_rdp(event, delta, relation, f"{engine} RDP")
    return _by_pld(event, delta, relation, f"{engine} PLD")


def unsupported_reason(event: Event, relation: Relation = "add_or_remove") -> str | None:
    """Return None if dp-accounting covers the event, else the reason why it doesn't."""
    all_steps = list(steps(event))
    for step in all_steps:
        if isinstance(step, BestOf) and (reason := _unsupported_selection(step, relation)) is not None:
            return reason
        noise = step_noise(step)
        if isinstance(step, events.RandomAllocation):
            return fill("second.allocation")
        if isinstance(step, events.TruncatedPoissonSampled):
            if not isinstance(noise, events.GaussianNoise):
                return fill("second.truncated_noise")
            if relation == "add_or_remove":
                return fill("second.truncated_relation")
        if isinstance(noise, events.ZeroConcentrated) and noise is not step:
            return fill("second.sampled_zcdp")
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
    return _unsupported_mixture(all_steps, relation)


def _unsupported_mixture(all_steps: list[Step], relation: Relation) -> str | None:
    """Return why steps that dp-accounting has one by one are too many kinds for one accountant of it; None if not."""
    poisson = [step for step in all_steps if isinstance(step, events.PoissonSampled)]
    only_pld = [step for step in all_steps if isinstance(step, events.TruncatedPoissonSampled | RandomisedResponse)]
    only_rdp = list(filter(_has_only_rdp, all_steps))
    if only_pld and only_rdp:
        return fill("second.pld_and_rdp")
    if poisson and any(map(_is_fixed_size, only_rdp)):
        return fill("second.mixed_sampling")
    if only_rdp and any(isinstance(step.event, events.LaplaceNoise) for step in poisson):
        return fill("second.sampled_laplace")
    if (
        (poisson or only_pld)
        and relation == "replace"
        and not all(isinstance(step_noise(step), events.GaussianNoise | RandomisedResponse) for step in all_steps)
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
    if any(isinstance(inner, RandomisedResponse) for inner in noisy_steps(step)):
        return fill("second.pld_and_rdp")
    sampled = [inner for inner in noisy_steps(step) if isinstance(inner, events.Sampled)]
    if any(not isinstance(inner, events.PoissonSampled) for inner in sampled) or (sampled and relation == "replace"):
        return fill("second.sampled_trials")
    if any(isinstance(inner.event, events.LaplaceNoise) for inner in sampled):
        return fill("second.sampled_laplace")
    return unsupported_reason(step.trials[0], relation)


def _by_pld(event: Event, delta: float, relation: Relation, engine: str) -> SecondOpinion:
    counts = steps(event)
    if not counts:
        return SecondOpinion(engine, 0.0, same_method=True)
    native = relation == "replace" and any(isinstance(step, NATIVE_REPLACE) for step in counts)
    answers = sum(count for step, count in counts.items() if isinstance(step, RandomisedResponse))
    if answers > MOST_ANSWERS:
        return SecondOpinion(engine, None, fill("second.slow", repeats=f"{answers:,}"))
    if relation == "replace" and not native:
        counts = {_double_sensitivity(step): count for step, count in counts.items()}
    grid = choose_grid(counts, replace=native)
    if grid.points > 1.01 * MOST_POINTS / coarseness(counts):
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
                if isinstance(step, RandomisedResponse):  # its PLD ignores how often (docs/notes/dp-accounting.md)
                    for _ in range(count):
                        asked.compose(step_to_dp_accounting(step))
                else:
                    asked.compose(step_to_dp_accounting(step), count)
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


def _relation(*, replace: bool) -> Any:
    from dp_accounting import NeighboringRelation

    return NeighboringRelation.REPLACE_ONE if replace else NeighboringRelation.ADD_OR_REMOVE_ONE


def _double_sensitivity(step: Step) -> Step:
    return replace_noise(step, scale_sensitivity(step_noise(step), 2.0))


def _has_only_rdp(step: Step) -> bool:
    only_rdp = events.DiscreteGaussianNoise | events.ZeroConcentrated | BestOf
    return isinstance(step_noise(step), only_rdp) or _is_fixed_size(step)


def _is_fixed_size(step: Step) -> bool:
    return isinstance(step, events.SampledWithoutReplacement)
