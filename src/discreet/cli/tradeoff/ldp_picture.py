"""Paper 001's three graphs: noise, utility and bits against ε, for every way to count."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.cli.tradeoff.ldp_answer import NAMES
from discreet.cli.tradeoff.sweep_rows import counted
from discreet.planning.theory import kim_exact_noise, kim_utility
from discreet.planning.theory.kim_client_groups import MINIBATCH, PER_EXAMPLE, Group
from discreet.planning.theory.kim_epsilon_domains import EpsilonDomain, epsilon_domain
from discreet.planning.theory.kim_gradient_bits import gradient_bits
from discreet.planning.theory.kim_noise_bounds import FORMS, MIN_VARIANCE, noise_bound
from discreet.planning.theory.kim_utility import Learning
from discreet.privacy.wording import compact
from discreet.report.curves import Curve, Limit, Mark, Panel, Picture, Point, curve

BELOW, ABOVE, POINTS = 125.0, 10.0, 31  # ε from some hundredth of what was asked, to ten times that
ACROSS = "ε promised"
NOTES = (
    "Dashed where a bound's conditions fail; dotted lines are where each begins, as σ falls below 1/(16q). From where "
    "σ² would be less than 1 the paper hands out 1, and its curves are level; there is no curve where σ² is not even "
    "positive.",
    "Exact is our accountant's: at C each example is clipped, at 2C the batch's mean, as in the paper. At C noise lies "
    "on a sum, and what is sent is that over the batch, so no utility or bits are shown of it. The true ε of the "
    "paper's noise may be above the one promised.",
    "The printed bits add two differential entropies, which says nothing of a sum, and are less than the noise alone "
    "takes; the other curves are at most. The printed utility leaves out what clipping takes away.",
)


def picture(group: Group, learning: Learning, step: float) -> Picture:
    """The three panels side by side, over the same ε."""
    swept = sweep(group)
    return Picture(
        title="Privacy, utility and bits (paper 001)",
        panels=(_noise(swept), _utility(swept.sent(), group, learning), _bits(swept.sent(), learning, step)),
        notes=(_setting(group, learning), *NOTES),
    )


@dataclass(frozen=True)
class Way:
    """One way to count: the σ² that it hands out at each ε, NaN where it hands out nothing, and whether it holds."""

    name: str
    variances: Sequence[float]
    holds: Sequence[bool]

    def heights(self, height: Callable[[float], float]) -> list[float]:
        """Something of each σ²; a gap where there is none."""
        return [variance if math.isnan(variance) else height(variance) for variance in self.variances]


@dataclass(frozen=True)
class Sweep:
    """Every way to count over the same ε, with their domains."""

    epsilons: Sequence[float]
    ways: Sequence[Way]
    domains: dict[str, EpsilonDomain]

    def sent(self) -> "Sweep":
        """Without what lies on a sum that nobody sends."""
        return replace(self, ways=[way for way in self.ways if way.name != NAMES[PER_EXAMPLE]])

    def curves(self, height: Callable[[float], float]) -> Iterator[Curve]:
        """One for each way where it holds, and one more, dashed, where its conditions fail."""
        for way in self.ways:
            heights = way.heights(height)
            for shown, dashed in ((_failing(way.holds), True), (way.holds, False)):
                if any(shown):
                    yield curve(way.name, self.epsilons, _where(shown, heights), dashed=dashed)

    def limits(self) -> tuple[Limit, ...]:
        """Where each bound begins."""
        begun = {NAMES[name]: each.begins for name, each in self.domains.items()}
        return tuple(Limit(f"{name} begins", at) for name, at in begun.items() if at is not None and self.shows(at))

    def marks(self) -> tuple[Mark, ...]:
        """From where Theorem 1 hands out σ = 1; the others' names would lie on top of its own."""
        at = self.domains["theorem1"].saturates
        return () if at is None or not self.shows(at) else (Mark("Theorem 1: σ = 1", Point(at, MIN_VARIANCE)),)

    def shows(self, epsilon: float) -> bool:
        return self.epsilons[0] < epsilon < self.epsilons[-1]


def sweep(group: Group) -> Sweep:
    """Around the group's own ε; where a bound's conditions change, or its noise becomes level, is a point too."""
    promise = group.promise
    domains = {name: epsilon_domain(name, promise) for name in FORMS}
    low, high = promise.epsilon / BELOW, promise.epsilon * ABOVE
    turns = {turn for each in domains.values() for turn in _turns(each) if low < turn < high}
    epsilons = sorted({*np.geomspace(low, high, POINTS).tolist(), *turns})
    promises = [promise.at(epsilon) for epsilon in epsilons]
    exact = [kim_exact_noise.required_variance("per_example", each) for each in promises]
    batches = kim_exact_noise.SENSITIVITIES["minibatch"] ** 2
    ways = [Way(NAMES[PER_EXAMPLE], exact, [True] * len(exact))]  # its colour comes again for the sixth, exact too
    for name in FORMS:
        found = [noise_bound(name, each) for each in promises]
        handed = [math.nan if each.handed_out is None else each.handed_out for each in found]
        ways.append(Way(NAMES[name], handed, [each.valid for each in found]))
    ways.append(Way(NAMES[MINIBATCH], [batches * each for each in exact], [True] * len(exact)))
    return Sweep(epsilons, ways, domains)


def _noise(swept: Sweep) -> Panel:
    return Panel(
        title="Noise",
        across=ACROSS,
        up="σ² handed out, in units of C²",
        curves=tuple(swept.curves(lambda variance: variance)),
        limits=swept.limits(),
        marks=swept.marks(),
        log_x=True,
        log_y=True,
    )


def _utility(swept: Sweep, group: Group, learning: Learning) -> Panel:
    def height(variance: float) -> float:
        return kim_utility.printed_utility(
            kim_utility.average_variance([group.weight], [variance], [group.clients]), learning
        )

    return Panel(
        title="Utility, as printed",
        across=ACROSS,
        up="1 / (loss − least loss), at least",
        curves=tuple(swept.curves(height)),
        limits=swept.limits(),
        log_x=True,
        log_y=True,
    )


def _bits(swept: Sweep, learning: Learning, step: float) -> Panel:
    def found(variance: float) -> tuple[float, float]:
        each = gradient_bits(learning.dimension, variance, clip_norm=learning.clip_norm, step=step)
        return each.printed / learning.dimension, each.corrected / learning.dimension

    theorem = next(way for way in swept.ways if way.name == NAMES["theorem1"])
    printed = theorem.heights(lambda variance: found(variance)[0])
    return Panel(
        title=f"Bits, at steps of {compact(step)}",
        across=ACROSS,
        up="bits a weight, at most",
        curves=(
            *swept.curves(lambda variance: found(variance)[1]),
            curve("Theorem 1, printed", swept.epsilons, printed, dashed=True),
        ),
        limits=swept.limits(),
        log_x=True,
    )


def _setting(group: Group, learning: Learning) -> str:
    promise = group.promise
    return (
        f"{counted(group.clients, 'client')}, {counted(promise.rounds, 'round')} at {compact(promise.sampling_rate)}, "
        f"{counted(learning.dimension, 'weight')}, δ = {compact(promise.delta)}."
    )


def _turns(each: EpsilonDomain) -> list[float]:
    return [turn for turn in (each.begins, each.saturates, *sum(each.refused, ())) if turn is not None]


def _failing(holds: Sequence[bool]) -> list[bool]:
    """Where it fails, and the points next to that, so that lines meet."""
    around = [True, *holds, True]
    return [not all(around[at : at + 3]) for at in range(len(holds))]


def _where(shown: Sequence[bool], heights: Sequence[float]) -> list[float]:
    return [height if here else math.nan for here, height in zip(shown, heights, strict=True)]
