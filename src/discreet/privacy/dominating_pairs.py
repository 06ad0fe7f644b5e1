"""Dominating pairs: two distributions that are at least as easy to tell apart as any neighbours' outputs.

A pair is a list of atoms, each a privacy loss log(P/Q) and the log of its mass under P. Sampling maps the atoms
of an unsampled release to those of a sampled one.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.errors import Unsupported
from discreet.privacy.allocation_pair import AllocationBase
from discreet.privacy.events import (
    BestOf,
    GaussianNoise,
    PoissonSampled,
    PoissonSampledGroup,
    RandomAllocation,
    RandomisedResponse,
    SampledWithoutReplacement,
    Step,
    TruncatedPoissonSampled,
)
from discreet.privacy.noise_pairs import Array, Base, GaussianBase, ResponseBase, base_pair
from discreet.privacy.release import Relation
from discreet.privacy.sampling_schemes import (
    Antipodal,
    Atoms,
    Directions,
    NoSampling,
    OrderedPair,
    Poisson,
    PoissonGroup,
    Replacement,
    Sampling,
)
from discreet.privacy.truncated_sampling import truncation_cases

ROUNDING = 4e-15  # relative, of a loss that was computed through sampling: some twenty roundings of a double


class Pair(Protocol):
    """The dominating pair of one step."""

    @property
    def tops(self) -> tuple[float, float]:
        """The largest loss forward and backward, rounded up where sampling had to compute it."""

    @property
    def max_tilt(self) -> float:
        """The largest tilt; weights e^(tilt·loss) beyond it select masses too small for a double."""

    def atoms(self, edges: Array) -> Directions:
        """Return the pair's atoms. No quadrature panel straddles a loss in `edges`, in either direction."""


@dataclass(frozen=True)
class SampledPair:
    """A base pair seen through a sampling scheme."""

    base: Base
    sampling: Sampling

    @property
    def max_tilt(self) -> float:
        return self.base.max_tilt

    def atoms(self, edges: Array) -> Directions:
        inner = self.sampling.base_losses(edges)
        return self.sampling.directions(*self.base.nodes(inner[np.isfinite(inner)]))

    @property
    def tops(self) -> tuple[float, float]:
        both = self.sampling.directions(np.array([-self.base.top, self.base.top]), np.zeros(2))
        forward, backward = float(both.forward.losses.max()), float(both.backward.losses.max())
        return self._round_up(forward), self._round_up(backward)

    def _round_up(self, loss: float) -> float:
        return loss if loss == self.base.top else loss * (1 + ROUNDING)


@dataclass(frozen=True)
class RevealedMixture:
    """One of several pairs, drawn with these probabilities, and an observer is told which: at least as easy to tell."""

    probabilities: tuple[float, ...]
    pairs: tuple[Pair, ...]

    @property
    def tops(self) -> tuple[float, float]:
        forward, backward = zip(*(pair.tops for pair in self.pairs), strict=True)
        return max(forward), max(backward)

    @property
    def max_tilt(self) -> float:
        return min(pair.max_tilt for pair in self.pairs)

    def atoms(self, edges: Array) -> Directions:
        each = [pair.atoms(edges) for pair in self.pairs]
        forward = self._join([both.forward for both in each])
        if all(both.forward is both.backward for both in each):
            return Directions(forward, forward)
        return Directions(forward, self._join([both.backward for both in each]))

    def _join(self, sides: list[Atoms]) -> Atoms:
        shares = zip(self.probabilities, sides, strict=True)
        log_masses = [side.log_masses + math.log(probability) for probability, side in shares]
        return Atoms(np.concatenate([side.losses for side in sides]), np.concatenate(log_masses))


def dominating_pair(step: Step, relation: Relation) -> Pair:
    """Return the dominating pair of `step` between neighbours under `relation`.

    Zeroing a unit out leaves the same sum as removing it, so both have the add-or-remove pair. Replacing a unit moves
    the sum by twice the sensitivity: one contribution leaves, and another one enters.
    """
    replace = relation == "replace"
    match step:
        case PoissonSampled(sampling_rate=rate, event=GaussianNoise(noise_multiplier=z) as noise) if replace:
            return SampledPair(base_pair(noise), Antipodal(rate, 1 / z))
        case PoissonSampled(sampling_rate=rate, event=noise):
            return SampledPair(
                base_pair(noise, 2.0 if replace else 1.0), Replacement(rate) if replace else Poisson(rate)
            )
        case PoissonSampledGroup(sampling_rate=rate, group_size=size, event=GaussianNoise(noise_multiplier=z) as noise):
            refuse_replaced_group(relation)
            base_pair(noise, size)  # refuses noise that is too small for the largest shift
            return SampledPair(GaussianBase(1 / z, size), PoissonGroup(rate, size, 1 / z))
        case PoissonSampledGroup():
            raise Unsupported(
                "No dominating pair is listed for a group under sampling and this noise.",
                fix="Its Rényi bound is what is certified.",
            )
        case SampledWithoutReplacement(sampling_rate=rate, event=noise):
            require_replace(relation)
            return SampledPair(base_pair(noise, 2.0), Replacement(rate))
        case TruncatedPoissonSampled():
            probabilities, inner, relations = zip(*truncation_cases(step, relation), strict=True)
            return RevealedMixture(probabilities, tuple(map(dominating_pair, inner, relations)))
        case RandomAllocation(bins=bins, event=GaussianNoise(noise_multiplier=z)):
            refuse_replaced_allocation(relation)
            return SampledPair(AllocationBase.for_noise(bins, 1 / z), OrderedPair())
        case RandomisedResponse():
            require_replaced_answer(relation)
            return SampledPair(ResponseBase(step.epsilon, step.categories), NoSampling())
        case BestOf():
            raise Unsupported(
                "No dominating pair is listed for the best of several trials.",
                fix="Its Rényi bound is what is certified.",
            )
        case _:
            return SampledPair(base_pair(step, 2.0 if replace else 1.0), NoSampling())


def require_replace(relation: Relation) -> None:
    """Raise Unsupported unless the relation is replace, the only one proven for sampling without replacement."""
    if relation != "replace":
        raise Unsupported(
            f"Sampling a fixed number is counted under the relation replace only, and got {relation}.",
            fix="Ask for replace, or sample by Poisson.",
        )


def refuse_replaced_group(relation: Relation) -> None:
    """Raise Unsupported if a group is to be replaced: what is proven is for adding, removing or blanking it."""
    if relation == "replace":
        raise Unsupported(
            "A group under Poisson sampling is counted for adding, removing or blanking it, not for replacing.",
            fix="Ask for add_or_remove or zero_out.",
        )


def refuse_replaced_allocation(relation: Relation) -> None:
    """Raise Unsupported if a unit in a random bin is to be replaced: what is proven is for adding or blanking it."""
    if relation == "replace":
        raise Unsupported(
            "Random allocation is counted for adding, removing or blanking a unit, not for replacing it.",
            fix="Ask for add_or_remove or zero_out.",
        )


def require_replaced_answer(relation: Relation) -> None:
    """Raise Unsupported unless the relation is replace: an answer that is missing can be seen to be missing."""
    if relation != "replace":
        raise Unsupported(
            f"Randomised response is counted under the relation replace only, and got {relation}.",
            fix="Ask for replace: it covers an answer that is changed to any other, also to an agreed blank one.",
        )
