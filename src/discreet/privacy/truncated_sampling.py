"""Truncated Poisson sampling as a public choice between two steps: the cap was not reached, or it was."""

from typing import NamedTuple

from discreet.privacy.binomial_tail import binomial_tail
from discreet.privacy.events import GaussianNoise, Noise, PoissonSampled, TruncatedPoissonSampled, scale_sensitivity
from discreet.privacy.release import Relation

MARGIN = 1e-8  # relative, of a rate that is a quotient of two tails
NEVER = 1e-200  # a probability below which tails are no longer divided by each other


class Case(NamedTuple):
    """One of the cases: its probability, and the step and relation whose dominating pair bounds it."""

    probability: float
    step: PoissonSampled | Noise
    relation: Relation


def truncation_cases(step: TruncatedPoissonSampled, relation: Relation) -> tuple[Case, ...]:
    """Return the cases of a truncated sample, of which an observer may know which one it is.

    Guarantee: the mixture of the cases' pairs, with the case revealed, dominates the step (docs/notes/truncated.md).
    Let N be the number of the other units that join. If N is below the cap, the unit joins by its coin. Otherwise a
    unit that joins displaces another one, so that the sum moves by twice the sensitivity; it does so at the rate
    E[q·cap/(N + 1)]. Under add-or-remove the rate q is used, with which the bound grows with the population; so it
    holds for every smaller one too.
    """
    rate, most, population = step.sampling_rate, step.max_batch_size, step.population
    reached = binomial_tail(most, population - 1, rate)
    joins = min(rate, _displacing_rate(step, reached)) if relation != "add_or_remove" else rate
    noise = step.event
    # For Gaussian noise the pair of a replaced unit holds for any two contributions at this distance from a third;
    # for other noise it holds for any two outputs at twice the sensitivity from each other, which is what we have.
    displaced = scale_sensitivity(noise, 2.0) if isinstance(noise, GaussianNoise) else noise
    cases = (
        Case(1 - reached, _sample_at(rate, noise), relation),
        Case(reached, _sample_at(joins, displaced), "replace"),
    )
    return tuple(case for case in cases if case.probability > 0)


def _sample_at(rate: float, noise: Noise) -> PoissonSampled | Noise:
    return noise if rate == 1 else PoissonSampled(sampling_rate=rate, event=noise)


def _displacing_rate(step: TruncatedPoissonSampled, reached: float) -> float:
    """Return the probability that the unit joins and stays, given that the others reach the cap."""
    if reached < NEVER:
        return step.sampling_rate
    more = binomial_tail(step.max_batch_size + 1, step.population, step.sampling_rate)
    return step.max_batch_size / step.population * more / reached * (1 + MARGIN)
