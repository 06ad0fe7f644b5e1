"""Events of dp-accounting from ours, and ours from theirs."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.errors import InvalidInput, Unsupported
from discreet.extras import import_library
from discreet.part import from_plain
from discreet.privacy import events
from discreet.privacy.events import NOTHING, BestOf, Event, GaussianNoise, Step, steps
from discreet.privacy.noise_pairs import log_binomial
from discreet.privacy.trial_count import PoissonTrials, TrialCount, TruncatedNegativeBinomial, count_with_mean

SAME_CHANCES = 1e-9  # relative: how well the weights of a mixture must match a binomial distribution


def to_dp_accounting(event: Event) -> Any:
    """Convert the event to dp-accounting's classes.

    Args:
        event: The event, such as `PoissonSampled(...)`.

    Returns:
        A `ComposedDpEvent` of the distinct steps, each with its count. Discrete Gaussian noise becomes a `ZCDpEvent`,
        which is all that dp-accounting can know of it.

    Raises:
        Unsupported: dp-accounting has no such event.
        MissingExtra: dp-accounting is not installed.

    Example:
        >>> from discreet.privacy.events import GaussianNoise
        >>> to_dp_accounting(GaussianNoise(noise_multiplier=2.0)).events[0].event
        GaussianDpEvent(noise_multiplier=2.0)
    """
    theirs = import_library("dp_accounting", "Export to dp-accounting")
    composed = [theirs.SelfComposedDpEvent(step_to_dp_accounting(step), count) for step, count in steps(event).items()]
    return theirs.ComposedDpEvent(composed)


def step_to_dp_accounting(step: Step) -> Any:
    """Convert one step to dp-accounting's class for it."""
    theirs = import_library("dp_accounting", "Export to dp-accounting")
    match step:
        case events.GaussianNoise():
            return theirs.GaussianDpEvent(step.noise_multiplier)
        case events.LaplaceNoise():
            return theirs.LaplaceDpEvent(step.noise_multiplier)
        case events.DiscreteGaussianNoise():
            return theirs.dp_event.ZCDpEvent(step.l2_sensitivity**2 / (2 * step.variance))
        case events.ZeroConcentrated():
            return theirs.dp_event.ZCDpEvent(step.rho)
        case events.RandomisedResponse():
            return theirs.dp_event.RandomizedResponseDpEvent(step.random_share, step.categories)
        case events.PoissonSampled():
            return theirs.PoissonSampledDpEvent(step.sampling_rate, step_to_dp_accounting(step.event))
        case events.PoissonSampledGroup(sampling_rate=rate, group_size=size, event=GaussianNoise(noise_multiplier=z)):
            chances = binomial_chances(rate, size).tolist()
            return theirs.dp_event.MixtureOfGaussiansDpEvent(z, list(range(size + 1)), chances)
        case events.TruncatedPoissonSampled(event=GaussianNoise(noise_multiplier=z)):
            return theirs.dp_event.TruncatedSubsampledGaussianDpEvent(
                step.population, step.sampling_rate, step.max_batch_size, z
            )
        case events.SampledWithoutReplacement():
            inner = step_to_dp_accounting(step.event)
            return theirs.SampledWithoutReplacementDpEvent(step.population, step.cohort, inner)
        case BestOf(count=count, trials=(trial,)):
            shape = count.shape if isinstance(count, TruncatedNegativeBinomial) else math.inf
            return theirs.dp_event.RepeatAndSelectDpEvent(to_dp_accounting(trial), count.mean, shape)
        case _:
            raise Unsupported(f"dp-accounting has no {DESCRIPTIONS[step.kind]}.", fix="Use our own accountants.")


DESCRIPTIONS = {
    "skellam": "Skellam noise",
    "distributed_discrete_gaussian": "sums of discrete Gaussians",
    "poisson_sampled_group": "groups under sampling in noise that is not Gaussian",
    "truncated_poisson_sampled": "truncated Poisson sampling with noise that is not Gaussian",
    "random_allocation": "random allocation",
    "best_of": "selection among trials with different noise",
}


def binomial_chances(rate: float, size: int) -> Any:
    """Return the chance that 0, 1, … or all of so many are drawn."""
    if rate == 1:
        return np.append(np.zeros(size), 1.0)
    chances = np.exp(log_binomial(size, np.arange(size + 1.0), rate))
    return chances / chances.sum()


def from_dp_accounting(event: Any) -> Event:
    """Convert an event of dp-accounting to ours. dp-accounting itself is not needed for it.

    Args:
        event: A `DpEvent`.

    Returns:
        An event with the same guarantee, or a weaker one that follows from it: the fields mean the same there and here.

    Raises:
        Unsupported: We have no accountant for such an event, or for these fields of it.

    Example:
        >>> import dp_accounting
        >>> from_dp_accounting(dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.0))).kind
        'poisson_sampled'
    """
    name = type(event).__name__
    if name not in _READERS or not type(event).__module__.startswith("dp_accounting"):
        known = ", ".join(sorted(_READERS))
        raise Unsupported(f"A {name} of dp-accounting has no event here.", fix=f"These have: {known}.")
    try:
        return _READERS[name](event)
    except Unsupported:
        raise
    except InvalidInput as error:
        raise Unsupported(
            f"This {name} of dp-accounting has no event here: {error}", fix="Change it, or account for it there."
        ) from None


def _read_sampled(event: Any) -> Event:
    if event.sampling_probability == 0:
        return NOTHING
    return _build("poisson_sampled", sampling_rate=event.sampling_probability, event=_read_noise(event.event))


def _read_fixed_size(event: Any) -> Event:
    sizes = {"population": event.source_dataset_size, "cohort": event.sample_size}
    return _build("sampled_without_replacement", **sizes, event=_read_noise(event.event))


def _read_truncated(event: Any) -> Event:
    if 0 in (event.sampling_probability, event.truncated_batch_size, event.dataset_size):
        return NOTHING
    return _build(
        "truncated_poisson_sampled",
        sampling_rate=event.sampling_probability,
        max_batch_size=event.truncated_batch_size,
        population=event.dataset_size,
        event=_build("gaussian", noise_multiplier=event.noise_multiplier),
    )


def _read_zcdp(event: Any) -> Event:
    if event.xi != 0:
        raise Unsupported(f"(ξ, ρ)-zCDP has an event here for ξ = 0 only, and got ξ = {event.xi}.")
    return NOTHING if event.rho == 0 else _build("zcdp", rho=event.rho)


def _read_response(event: Any) -> Event:
    if event.num_buckets == 1:
        return NOTHING
    return _build("randomised_response", categories=event.num_buckets, random_share=event.noise_parameter)


def _read_mixture(event: Any) -> Event:
    """Read a mixture of Gaussians whose weights are those of a group under Poisson sampling."""
    size, given = len(event.sensitivities) - 1, np.asarray(event.sampling_probs, dtype=np.float64)
    if size >= 1 and list(event.sensitivities) == list(range(size + 1)) and len(given) == size + 1 and given[0] < 1:
        rate = -math.expm1(math.log(given[0]) / size) if given[0] > 0 else 1.0
        if np.allclose(given, binomial_chances(rate, size), rtol=SAME_CHANCES, atol=1e-300):
            noise = _build("gaussian", noise_multiplier=event.standard_deviation)
            return _build("poisson_sampled_group", sampling_rate=rate, group_size=size, event=noise)
    raise Unsupported(
        "A mixture of Gaussians has an event here if its weights are a binomial distribution over 0, 1, …, k.",
        fix="Account for it in dp-accounting.",
    )


def _read_selection(event: Any) -> Event:
    count: TrialCount = (
        PoissonTrials(mean=event.mean) if math.isinf(event.shape) else _count_at_least(event.mean, event.shape)
    )
    return BestOf(count=count, trials=(from_dp_accounting(event.event),))


def _count_at_least(mean: float, shape: float) -> TruncatedNegativeBinomial:
    """Return the distribution of this shape and mean, rounded so that its mean is no smaller: that costs more."""
    count = count_with_mean(mean, shape)
    while count.mean < mean:
        count = TruncatedNegativeBinomial(shape=shape, stop_probability=count.stop_probability * (1 - 1e-15))
    return count


def _read_noise(event: Any) -> Any:
    noise = from_dp_accounting(event)
    if not isinstance(noise, GaussianNoise | events.LaplaceNoise | events.ZeroConcentrated):
        raise Unsupported(f"Sampling around a {type(event).__name__} of dp-accounting has no event here.")
    return noise


def _build(kind: str, **fields: Any) -> Event:
    event: Event = from_plain(Event, {"kind": kind, **fields})
    return event


def _read_repeated(event: Any) -> Event:
    inner = from_dp_accounting(event.event)
    return NOTHING if event.count == 0 else _build("repeated", count=event.count, event=inner)


_READERS: dict[str, Callable[[Any], Event]] = {
    "NoOpDpEvent": lambda event: NOTHING,
    "GaussianDpEvent": lambda event: _build("gaussian", noise_multiplier=event.noise_multiplier),
    "LaplaceDpEvent": lambda event: _build("laplace", noise_multiplier=event.noise_multiplier),
    "ZCDpEvent": _read_zcdp,
    "RandomizedResponseDpEvent": _read_response,
    "PoissonSampledDpEvent": _read_sampled,
    "SampledWithoutReplacementDpEvent": _read_fixed_size,
    "TruncatedSubsampledGaussianDpEvent": _read_truncated,
    "MixtureOfGaussiansDpEvent": _read_mixture,
    "RepeatAndSelectDpEvent": _read_selection,
    "SelfComposedDpEvent": _read_repeated,
    "ComposedDpEvent": lambda event: events.Composed(events=tuple(map(from_dp_accounting, event.events))),
}
