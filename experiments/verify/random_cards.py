"""Random events of every kind for which the checker has a dominating pair, and the cards that our accountants make."""

import json
import math
import random
from collections.abc import Callable
from typing import NamedTuple

from discreet.part import to_plain
from discreet.privacy import accountant
from discreet.privacy.events import (
    Composed,
    DistributedDiscreteGaussianNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    PoissonSampled,
    PoissonSampledGroup,
    Repeated,
    SampledWithoutReplacement,
    SkellamNoise,
    Step,
)
from discreet.privacy.release import Relation
from discreet.verify.card_reader import Card


class RandomCard(NamedTuple):
    """A drawn event, its relation and δ, and the kind of event it is."""

    kind: str
    event: Event
    relation: Relation
    delta: float


class _Draws:
    """Random numbers on logarithmic scales, over the ranges in which cards are drawn."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def number(self, low: float, high: float) -> float:
        return math.exp(self._source.uniform(math.log(low), math.log(high)))

    def count(self, most: float) -> int:
        return round(self.number(1, most))

    def gaussian(self) -> Noise:
        return GaussianNoise(noise_multiplier=self.number(0.3, 10))

    def laplace(self) -> Noise:
        return LaplaceNoise(noise_multiplier=self.number(0.3, 10))

    def skellam(self) -> Noise:
        variance = self.number(10, 1e8)
        return SkellamNoise(
            variance=variance,
            l2_sensitivity=math.sqrt(variance) / self.number(0.3, 10) + 1,
            dimension=1 + self.count(1e6),  # on one coordinate it has a pair of its own, which the checker lacks
        )

    def shares(self) -> Noise:
        variance, shares = self.number(2, 1e6), self.count(100)
        return DistributedDiscreteGaussianNoise(
            variance=variance,
            shares=shares,
            l2_sensitivity=math.sqrt(shares * variance) / self.number(0.3, 10) + 1,
            dimension=self.count(1e6),
        )

    def poisson(self, noise: Noise) -> Step:
        return PoissonSampled(sampling_rate=self.number(1e-4, 1), event=noise)

    def fixed_size(self, noise: Noise) -> Step:
        return SampledWithoutReplacement(cohort=10, population=max(11, self.count(1e5)), event=noise)

    def group(self) -> Step:
        size = self._source.randint(2, 12)
        return PoissonSampledGroup(sampling_rate=self.number(1e-4, 1), group_size=size, event=self.gaussian())

    def repeat_step(self, step: Step, most: float = 1e5) -> Event:
        return Repeated(count=self.count(most), event=step)

    def mix_steps(self, *steps: Step) -> Event:
        first, *others = steps
        return Composed(events=(self.repeat_step(first), *(self.repeat_step(other, 1e3) for other in others)))


KINDS: dict[str, tuple[Callable[[_Draws], Event], Relation]] = {
    "gaussian": (lambda d: d.repeat_step(d.gaussian()), "add_or_remove"),
    "laplace": (lambda d: d.repeat_step(d.laplace()), "zero_out"),
    "sampled gaussian": (lambda d: d.repeat_step(d.poisson(d.gaussian())), "add_or_remove"),
    "sampled laplace": (lambda d: d.repeat_step(d.poisson(d.laplace())), "zero_out"),
    "replaced gaussian": (lambda d: d.repeat_step(d.poisson(d.gaussian())), "replace"),
    "replaced laplace": (lambda d: d.repeat_step(d.poisson(d.laplace())), "replace"),
    "fixed-size gaussian": (lambda d: d.repeat_step(d.fixed_size(d.gaussian())), "replace"),
    "fixed-size laplace": (lambda d: d.repeat_step(d.fixed_size(d.laplace())), "replace"),
    "skellam": (lambda d: d.repeat_step(d.skellam()), "zero_out"),
    "sampled skellam": (lambda d: d.repeat_step(d.poisson(d.skellam())), "zero_out"),
    "replaced discrete gaussians": (lambda d: d.repeat_step(d.poisson(d.shares())), "replace"),
    "group": (lambda d: d.repeat_step(d.group()), "zero_out"),
    "mixed": (
        lambda d: d.mix_steps(d.poisson(d.gaussian()), d.laplace(), d.gaussian(), d.poisson(d.laplace())),
        "zero_out",
    ),
    "mixed, replaced": (
        lambda d: d.mix_steps(d.poisson(d.gaussian()), d.fixed_size(d.gaussian()), d.laplace(), d.gaussian()),
        "replace",
    ),
}


def draw_card(seed: int) -> RandomCard:
    """Draw one card. Seeds in a row go through all kinds."""
    kind = list(KINDS)[seed % len(KINDS)]
    draws = _Draws(random.Random(seed))
    make_event, relation = KINDS[kind]
    return RandomCard(kind, make_event(draws), relation, draws.number(1e-10, 1e-3))


def certify(drawn: RandomCard, factor: float = 1.0) -> Card:
    """Return the card that our accountants make of it, its ε multiplied by `factor`."""
    epsilon = accountant.account(drawn.event, drawn.delta, drawn.relation).epsilon * factor
    return Card(epsilon, drawn.delta, drawn.relation, json.loads(json.dumps(to_plain(drawn.event))), {})
