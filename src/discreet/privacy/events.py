"""Privacy events: what was released about the data, independent of how it is counted."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Literal, TypeAlias, overload

from pydantic import Field

from discreet.errors import InvalidInput, Unsupported
from discreet.part import Category, Count, Multiplier, Positive, Rate, Steps, Variance, complete_references, part
from discreet.privacy.trial_count import TrialCount


@part
class GaussianNoise:
    """Gaussian noise N(0, (zΔ)²) on each coordinate of a sum that one unit moves by at most Δ in L2.

    z is the noise multiplier.
    """

    kind: Literal["gaussian"] = "gaussian"
    noise_multiplier: Multiplier


@part
class LaplaceNoise:
    """Laplace noise of scale bΔ on each coordinate of a sum that one unit moves by at most Δ in L1.

    b is the noise multiplier.
    """

    kind: Literal["laplace"] = "laplace"
    noise_multiplier: Multiplier


@part
class SkellamNoise:
    """Skellam noise of this variance on each coordinate of an integer sum. All numbers are in lattice units."""

    kind: Literal["skellam"] = "skellam"
    variance: Variance
    l2_sensitivity: Steps
    dimension: Count

    @property
    def l1_sensitivity(self) -> float:
        """The L1 sensitivity: ‖k‖₁ ≤ ‖k‖₂·min(√d, ‖k‖₂), by Cauchy–Schwarz and abs(k) ≤ k² for integers."""
        return self.l2_sensitivity * min(math.sqrt(self.dimension), self.l2_sensitivity)


@part
class DiscreteGaussianNoise:
    """Discrete Gaussian noise with parameter σ² = `variance` on each coordinate of an integer sum, in lattice units."""

    kind: Literal["discrete_gaussian"] = "discrete_gaussian"
    variance: Variance
    l2_sensitivity: Steps


@part
class DistributedDiscreteGaussianNoise:
    """The sum of `shares` discrete Gaussian draws, each with σ² = `variance`, on each coordinate of an integer sum.

    The sum is not discrete Gaussian itself, and is never priced as if it were. All numbers are in lattice units.
    """

    kind: Literal["distributed_discrete_gaussian"] = "distributed_discrete_gaussian"
    variance: Variance
    shares: Count
    l2_sensitivity: Steps
    dimension: Count


@part
class ZeroConcentrated:
    """Any mechanism that is ρ-zCDP for a unit that is added, removed or blanked (Bun & Steinke 2016, Def. 1.1).

    Nothing else is known about it, so it has a Rényi curve, ρα, and no dominating pair. For k units together, and for
    a replaced unit with k = 2, it is k²ρ-zCDP (Prop. 1.9).
    """

    kind: Literal["zcdp"] = "zcdp"
    rho: Positive

    def rho_of_units(self, units: float) -> float:
        """Return ρ for so many units together."""
        return self.rho * max(1, math.ceil(units)) ** 2


_Noise: TypeAlias = (
    GaussianNoise
    | LaplaceNoise
    | SkellamNoise
    | DiscreteGaussianNoise
    | DistributedDiscreteGaussianNoise
    | ZeroConcentrated
)
Noise: TypeAlias = Annotated[_Noise, Field(discriminator="kind")]


@part
class PoissonSampled:
    """Each unit joins by its own secret coin of this rate; then the noise is added."""

    kind: Literal["poisson_sampled"] = "poisson_sampled"
    sampling_rate: Rate
    event: Noise


@part
class PoissonSampledGroup:
    """A unit holds up to `group_size` examples, and each joins by its own secret coin; then the noise is added.

    The unit moves the sum by as many sensitivities as it has examples that joined: a binomial number of them.
    """

    kind: Literal["poisson_sampled_group"] = "poisson_sampled_group"
    sampling_rate: Rate
    group_size: Count
    event: Noise

    @property
    def any_member_rate(self) -> float:
        """The probability that at least one member joins."""
        return -math.expm1(self.group_size * math.log1p(-self.sampling_rate)) if self.sampling_rate < 1 else 1.0


@part
class SampledWithoutReplacement:
    """A secret subset of exactly `cohort` of `population` units joins, all subsets equally likely; then the noise."""

    kind: Literal["sampled_without_replacement"] = "sampled_without_replacement"
    cohort: Count
    population: Count
    event: Noise

    def __post_init__(self) -> None:
        if self.cohort > self.population:
            raise InvalidInput(f"A cohort of {self.cohort} can't be drawn from a population of {self.population}.")

    @property
    def sampling_rate(self) -> float:
        """The probability that one unit is drawn."""
        return self.cohort / self.population


@part
class TruncatedPoissonSampled:
    """Each unit joins by its own secret coin; if more than `max_batch_size` join, a random subset; then the noise.

    All subsets of the units that joined are equally likely to stay. `population` is the number of all units: under
    zero-out and replace exactly, under add-or-remove at most.
    """

    kind: Literal["truncated_poisson_sampled"] = "truncated_poisson_sampled"
    sampling_rate: Rate
    max_batch_size: Count
    population: Count
    event: Noise


@part
class RandomAllocation:
    """Each unit joins exactly one of `bins` sums, drawn in secret and uniformly; each sum gets its own noise.

    This is one pass over the data, `bins` releases in all (balls and bins). Each sum may depend on the earlier ones.
    """

    kind: Literal["random_allocation"] = "random_allocation"
    bins: Count
    event: GaussianNoise

    @property
    def sampling_rate(self) -> float:
        """The probability that one unit joins a given sum."""
        return 1 / self.bins


Sampled: TypeAlias = (
    PoissonSampled | PoissonSampledGroup | SampledWithoutReplacement | TruncatedPoissonSampled | RandomAllocation
)


@part
class RandomisedResponse:
    """A unit reports its category; with probability `random_share`, one drawn uniformly from all categories instead.

    Each unit sends its own answer, so nobody needs to be trusted with the truth: local differential privacy.
    """

    kind: Literal["randomised_response"] = "randomised_response"
    categories: Category
    random_share: Rate

    @property
    def epsilon(self) -> float:
        """The largest privacy loss, log(1 + k(1 − p)/p), rounded up by a few roundings of a double."""
        return math.log1p((1 - self.random_share) / self.random_share * self.categories) * (1 + 1e-15)


@part
class BestOf:
    """The best of a secret random number of trials, of which only the winner and its score leave.

    The trials are independent. Each draws one of the events in `trials` without looking at the data. An event contains
    everything that its trial reveals, also the score by which trials are compared.
    """

    kind: Literal["best_of"] = "best_of"
    count: TrialCount
    trials: "Annotated[tuple[Event, ...], Field(min_length=1)]"


_Step: TypeAlias = _Noise | Sampled | RandomisedResponse | BestOf
Step: TypeAlias = Annotated[_Step, Field(discriminator="kind")]


@part
class Repeated:
    """`event`, `count` times with fresh randomness. Each may depend on what the earlier ones released."""

    kind: Literal["repeated"] = "repeated"
    count: Count
    event: "Event"


@part
class Composed:
    """Several events, one after the other. Without events, nothing was released."""

    kind: Literal["composed"] = "composed"
    events: "tuple[Event, ...]"


Event: TypeAlias = Annotated[_Step | Repeated | Composed, Field(discriminator="kind")]

complete_references(Repeated, Composed, BestOf)

NOTHING = Composed(events=())


def steps(event: Event) -> dict[Step, int]:
    """Return the distinct steps of an event and their counts: the one form that accountants read.

    Composition does not depend on order, a sampling rate of 1 is no sampling, a group of one is no group, one bin is no
    allocation, a cap that nobody can exceed is no cap, and an answer that is always random says nothing. All are
    normalised here and nowhere else.
    """
    counts: Counter[Step] = Counter()
    _count(event, 1, counts)
    return dict(sorted(counts.items(), key=lambda item: repr(item[0])))


def _count(event: Event, times: int, counts: Counter[Step]) -> None:
    match event:
        case Repeated():
            _count(event.event, times * event.count, counts)
        case Composed():
            for part in event.events:
                _count(part, times, counts)
        case PoissonSampledGroup(sampling_rate=rate, group_size=size, event=noise) if size == 1 or rate == 1:
            _count(PoissonSampled(sampling_rate=rate, event=scale_sensitivity(noise, size)), times, counts)
        case TruncatedPoissonSampled(sampling_rate=rate, event=noise) if event.max_batch_size >= event.population:
            _count(PoissonSampled(sampling_rate=rate, event=noise), times, counts)
        case RandomAllocation(bins=1):
            counts[event.event] += times
        case RandomisedResponse(random_share=1.0):
            pass
        case PoissonSampled() | SampledWithoutReplacement() if event.sampling_rate == 1:
            counts[event.event] += times
        case _:
            counts[event] += times


def repeat_event(event: Event, count: int) -> Event:
    """Return the event `count` times."""
    return event if count == 1 else Repeated(count=count, event=event)


def sampled_gaussian(noise_multiplier: float, sampling_rate: float, times: int) -> Repeated:
    """Return the event of DP-SGD: Gaussian noise on the sum over a Poisson sample, `times` times."""
    noise = GaussianNoise(noise_multiplier=noise_multiplier)
    return Repeated(count=times, event=PoissonSampled(sampling_rate=sampling_rate, event=noise))


def change_steps(event: Event, change: Callable[[Step], Step]) -> Event:
    """Return the event with every step changed; of a selection, every step of its trials."""
    match event:
        case Repeated():
            return Repeated(count=event.count, event=change_steps(event.event, change))
        case Composed():
            return Composed(events=tuple(change_steps(part, change) for part in event.events))
        case BestOf():
            return replace(event, trials=tuple(change_steps(trial, change) for trial in event.trials))
        case _:
            return change(event)


def noisy_steps(event: Event) -> Iterator[Noise | Sampled | RandomisedResponse]:
    """Yield every distinct step that adds noise; those of a selection are the steps of its trials."""
    for step in steps(event):
        if isinstance(step, BestOf):
            for trial in step.trials:
                yield from noisy_steps(trial)
        else:
            yield step


def has_sampling(event: Event) -> bool:
    """Return whether any step of the event samples who joins."""
    return any(isinstance(step, Sampled) for step in noisy_steps(event))


def has_selection(event: Event) -> bool:
    """Return whether the event releases the best of several trials."""
    return any(isinstance(step, BestOf) for step in steps(event))


def step_noise(step: Step) -> Noise | RandomisedResponse | BestOf:
    """Return the noise of a step, sampled or not. A selection or an answer has none, and is returned as it is."""
    return step.event if isinstance(step, Sampled) else step


def replace_noise(step: Step, noise: Noise | RandomisedResponse | BestOf) -> Step:
    """Return a copy of the step with other noise; the record refuses noise that it can't have."""
    return replace(step, event=noise) if isinstance(step, Sampled) else noise  # type: ignore[arg-type]


@overload
def scale_sensitivity(noise: Noise, factor: float) -> Noise: ...
@overload
def scale_sensitivity(
    noise: Noise | RandomisedResponse | BestOf, factor: float
) -> Noise | RandomisedResponse | BestOf: ...
def scale_sensitivity(noise: Noise | RandomisedResponse | BestOf, factor: float) -> Noise | RandomisedResponse | BestOf:
    """Return the noise relative to a sensitivity `factor` times as large; of a selection, that of every trial.

    Raises:
        Unsupported: The step is an answer of one unit, which has no sensitivity.
    """
    match noise:
        case BestOf():
            return replace(noise, trials=tuple(_scale_steps(trial, factor) for trial in noise.trials))
        case RandomisedResponse():
            raise Unsupported(
                "Randomised response is counted for one answer of one unit, not for several units together.",
                fix="Repeat the event once for each answer.",
            )
        case ZeroConcentrated():
            return replace(noise, rho=noise.rho_of_units(factor))
        case GaussianNoise() | LaplaceNoise():
            return replace(noise, noise_multiplier=noise.noise_multiplier / factor)
        case _:
            return replace(noise, l2_sensitivity=noise.l2_sensitivity * factor)


def _scale_steps(event: Event, factor: float) -> Event:
    scaled = {
        replace_noise(step, scale_sensitivity(step_noise(step), factor)): count for step, count in steps(event).items()
    }
    return Composed(events=tuple(Repeated(count=count, event=step) for step, count in scaled.items()))
