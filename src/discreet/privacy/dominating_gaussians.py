"""Gaussian noise that dominates integer noise on vectors in every direction (docs/notes/skellam.md)."""

import math
from typing import TypeAlias

from discreet.errors import Unsupported
from discreet.privacy import discrete_gaussian, events
from discreet.privacy.dominating_pairs import dominating_pair
from discreet.privacy.events import Event, GaussianNoise, Step, change_steps, noisy_steps, replace_noise, step_noise
from discreet.privacy.release import Relation

LatticeNoise: TypeAlias = events.SkellamNoise | events.DiscreteGaussianNoise | events.DistributedDiscreteGaussianNoise

LEAST_SKELLAM = 5.0  # variance from which the bound on Skellam's log-concavity is proven
LARGEST_CONCAVITY = 3.0  # from it on nothing is offered: a double just above it may be rounded to it
LEAST_MULTIPLIER, LARGEST_MULTIPLIER = 1e-6, 1e12  # that an event of Gaussian noise may hold
ROUNDING = 1e-14  # relative, of a variance: ten times what a few operations on doubles lose


def dominating_variance(noise: LatticeNoise) -> float | None:
    """Return the variance of Gaussian noise that dominates this noise on every coordinate, in lattice units.

    Guarantee: for all integer vectors k, noise around k against noise around 0 is a post-processing of N(‖k‖, s)
    against N(0, s), with s the variance returned, in both directions. So every pair of neighbours that is proven for
    Gaussian noise by comparing shifted outputs with the unshifted one, or two of them with each other, holds for this
    noise too: unsampled, sampled, of groups, and under replacement; not a bound for mixtures of many shifts against
    each other. None: the theorem offers nothing.
    """
    match noise:
        case events.SkellamNoise():
            return _variance_from(_skellam_log_concavity(noise.variance))
        case events.DiscreteGaussianNoise():
            return _variance_from(1 / noise.variance)
        case events.DistributedDiscreteGaussianNoise(variance=share, shares=shares):
            whole = _variance_from(1 / (shares * share) + discrete_gaussian.tau(share, shares))
            alone = _variance_from(1 / share)  # the other shares only post-process it
            return max((found for found in (whole, alone) if found is not None), default=None)


def dominating_gaussian(noise: LatticeNoise) -> GaussianNoise | None:
    """Return the Gaussian noise of `dominating_variance`, relative to the same sensitivity.

    Less noise dominates more, so a multiplier above what an event may hold is lowered. None also below that range.
    """
    multiplier = math.sqrt(dominating_variance(noise) or 0.0) / noise.l2_sensitivity
    if multiplier < LEAST_MULTIPLIER:
        return None
    return GaussianNoise(noise_multiplier=min(multiplier, LARGEST_MULTIPLIER))


def has_integer_noise(event: Event) -> bool:
    """Return whether any step of the event adds integer noise."""
    return any(isinstance(step_noise(step), LatticeNoise) for step in noisy_steps(event))


def replace_integer_noise(event: Event) -> Event:
    """Return the event with dominating Gaussian noise in place of integer noise, wherever there is one.

    Guarantee: it dominates the event under every relation for which its Gaussian steps have a proven bound.
    """
    return change_steps(event, _replace_in_step)


def replace_unpaired_noise(event: Event, relation: Relation) -> Event:
    """Return the event with dominating Gaussian noise in place of integer noise that has no pair of its own."""

    def change(step: Step) -> Step:
        unpaired = isinstance(step_noise(step), LatticeNoise) and not _has_own_pair(step, relation)
        return _replace_in_step(step) if unpaired else step

    return change_steps(event, change)


def _replace_in_step(step: Step) -> Step:
    noise = step_noise(step)
    found = dominating_gaussian(noise) if isinstance(noise, LatticeNoise) else None
    return replace_noise(step, found) if found else step


def _has_own_pair(step: Step, relation: Relation) -> bool:
    try:
        dominating_pair(step, relation)
    except Unsupported:
        return False
    return True


def _skellam_log_concavity(variance: float) -> float:
    """Return 1/(v − 7/12), at least 2·log p(k) − log p(k−1) − log p(k+1) at every k; infinite below v = 5."""
    return 1 / (variance - 7 / 12) if variance >= LEAST_SKELLAM else math.inf


def _variance_from(log_concavity: float) -> float | None:
    """Return 1/κ − 1/6, rounded down, for noise whose log mass bends by at most κ at every integer."""
    return (1 / log_concavity - 1 / 6) * (1 - ROUNDING) if log_concavity < LARGEST_CONCAVITY else None
