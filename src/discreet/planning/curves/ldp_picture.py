"""The three graphs of Kim, Günlü & Schaefer 2021: noise, utility and bits against ε, for every bound."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.planning.curves.ldp_tradeoff import BOUND_NAMES
from discreet.planning.theory import kim_exact_noise, kim_utility
from discreet.planning.theory.kim_client_groups import MINIBATCH, PER_EXAMPLE, Group
from discreet.planning.theory.kim_epsilon_domains import EpsilonDomain, epsilon_domain
from discreet.planning.theory.kim_gradient_bits import gradient_bits
from discreet.planning.theory.kim_noise_bounds import FORMS, MIN_VARIANCE, noise_bound
from discreet.planning.theory.kim_utility import Learning
from discreet.privacy.wording import compact
from discreet.report.curves import Curve, Limit, Mark, Panel, Picture, Point, curve
from discreet.report.number_format import format_count

BELOW, ABOVE, POINTS = 125.0, 10.0, 31  # the sweep goes from ε/125 to 10·ε, around the ε that was asked for
NOTES = (
    "Dashed where a bound's conditions fail; dotted lines show where each bound begins, as σ falls below 1/(16q). "
    "Where σ² would be less than 1 the paper's clients add 1, and its curves are level; there is no curve where σ² is "
    "not even positive.",
    "Exact is our accountant's: at C each example is clipped, at 2C the batch's mean, as in the paper. At C the noise "
    "is on a sum, and clients send that sum divided by the batch, so no utility or bits are shown for it. The true ε "
    "of the paper's noise may be above the promised one.",
    "The printed bits add two differential entropies, which does not bound the entropy of a sum, and are less than the "
    "noise alone takes; the other curves are upper bounds. The printed utility leaves out the effect of clipping.",
)


def draw_ldp(group: Group, learning: Learning, step: float) -> Picture:
    """Draw the three panels side by side, over the same ε."""
    sweep = sweep_epsilon(group)
    sent = sweep.without_sums()
    return Picture(
        title="Privacy, utility and bits (Kim, Günlü & Schaefer 2021)",
        panels=(_noise_panel(sweep), _utility_panel(sent, group, learning), _bits_panel(sent, learning, step)),
        notes=(_describe_setting(group, learning), *NOTES),
    )


@dataclass(frozen=True)
class BoundSweep:
    """One bound over all ε of the sweep.

    Attributes:
        variances: The σ² that its clients add at each ε; NaN where there is none.
        holds: Whether its conditions hold at each ε.
    """

    name: str
    variances: Sequence[float]
    holds: Sequence[bool]

    def heights(self, height: Callable[[float], float]) -> list[float]:
        """Compute a number from each σ²; NaN, a gap, where there is none."""
        return [variance if math.isnan(variance) else height(variance) for variance in self.variances]


@dataclass(frozen=True)
class EpsilonSweep:
    """Every bound over the same ε, and where each of them holds."""

    epsilons: Sequence[float]
    bounds: Sequence[BoundSweep]
    domains: dict[str, EpsilonDomain]

    def without_sums(self) -> "EpsilonSweep":
        """Leave out the noise on a sum that no client sends as it is."""
        return replace(self, bounds=[bound for bound in self.bounds if bound.name != BOUND_NAMES[PER_EXAMPLE]])

    def curves(self, height: Callable[[float], float]) -> Iterator[Curve]:
        """Yield a curve for each bound where it holds, and a dashed one where its conditions fail."""
        for bound in self.bounds:
            heights = bound.heights(height)
            for is_shown, dashed in ((_failing_points(bound.holds), True), (bound.holds, False)):
                if any(is_shown):
                    shown = [y if here else math.nan for here, y in zip(is_shown, heights, strict=True)]
                    yield curve(bound.name, self.epsilons, shown, dashed=dashed)

    def limits(self) -> tuple[Limit, ...]:
        """Return where each bound begins to hold."""
        starts = {BOUND_NAMES[name]: domain.begins for name, domain in self.domains.items()}
        return tuple(Limit(f"{name} begins", x) for name, x in starts.items() if x is not None and self.contains(x))

    def marks(self) -> tuple[Mark, ...]:
        """Mark where σ of Theorem 1 reaches 1; the labels of other bounds would overlap it."""
        x = self.domains["theorem1"].saturates
        return () if x is None or not self.contains(x) else (Mark("Theorem 1: σ = 1", Point(x, MIN_VARIANCE)),)

    def contains(self, epsilon: float) -> bool:
        return self.epsilons[0] < epsilon < self.epsilons[-1]

    def panel(self, title: str, y_label: str, curves: Iterable[Curve], **options: Any) -> Panel:
        """Return a panel over the promised ε, with the limits of all bounds."""
        return Panel(title, "promised ε", y_label, tuple(curves), limits=self.limits(), log_x=True, **options)


def sweep_epsilon(group: Group) -> EpsilonSweep:
    """Evaluate every bound around the group's own ε, including the ε where its conditions or its noise change."""
    promise = group.promise
    domains = {name: epsilon_domain(name, promise) for name in FORMS}
    low, high = promise.epsilon / BELOW, promise.epsilon * ABOVE
    changes = {change for domain in domains.values() for change in _change_points(domain) if low < change < high}
    epsilons = sorted({*np.geomspace(low, high, POINTS).tolist(), *changes})
    promises = [promise.with_epsilon(epsilon) for epsilon in epsilons]
    exact = [kim_exact_noise.required_variance("per_example", moved) for moved in promises]
    minibatch = kim_exact_noise.SENSITIVITIES["minibatch"] ** 2
    always = [True] * len(exact)
    sweeps = [BoundSweep(BOUND_NAMES[PER_EXAMPLE], exact, always)]  # first: its colour repeats for the sixth, exact too
    for name in FORMS:
        bounds = [noise_bound(name, moved) for moved in promises]
        applied = [math.nan if bound.applied_variance is None else bound.applied_variance for bound in bounds]
        sweeps.append(BoundSweep(BOUND_NAMES[name], applied, [bound.valid for bound in bounds]))
    sweeps.append(BoundSweep(BOUND_NAMES[MINIBATCH], [minibatch * variance for variance in exact], always))
    return EpsilonSweep(epsilons, sweeps, domains)


def _noise_panel(sweep: EpsilonSweep) -> Panel:
    curves = sweep.curves(lambda variance: variance)
    return sweep.panel("Noise", "σ² that clients add, in units of C²", curves, marks=sweep.marks(), log_y=True)


def _utility_panel(sweep: EpsilonSweep, group: Group, learning: Learning) -> Panel:
    def height(variance: float) -> float:
        average = kim_utility.average_variance([group.weight], [variance], [group.clients])
        return kim_utility.printed_utility(average, learning)

    return sweep.panel("Utility, as printed", "1 / (loss − least loss), at least", sweep.curves(height), log_y=True)


def _bits_panel(sweep: EpsilonSweep, learning: Learning, step: float) -> Panel:
    def bits_per_weight(variance: float) -> tuple[float, float]:
        bits = gradient_bits(learning.dimension, variance, clip_norm=learning.clip_norm, step=step)
        return bits.printed / learning.dimension, bits.corrected / learning.dimension

    theorem = next(bound for bound in sweep.bounds if bound.name == BOUND_NAMES["theorem1"])
    printed = theorem.heights(lambda variance: bits_per_weight(variance)[0])
    curves = (
        *sweep.curves(lambda variance: bits_per_weight(variance)[1]),
        curve("Theorem 1, printed", sweep.epsilons, printed, dashed=True),
    )
    return sweep.panel(f"Bits, at steps of {compact(step)}", "bits per weight, at most", curves)


def _describe_setting(group: Group, learning: Learning) -> str:
    promise = group.promise
    return (
        f"{format_count(group.clients, 'clients')}, {format_count(promise.rounds, 'rounds')} at sampling rate "
        f"{compact(promise.sampling_rate)}, {format_count(learning.dimension, 'weights')}, "
        f"δ = {compact(promise.delta)}."
    )


def _change_points(domain: EpsilonDomain) -> list[float]:
    return [change for change in (domain.begins, domain.saturates, *sum(domain.refused, ())) if change is not None]


def _failing_points(holds: Sequence[bool]) -> list[bool]:
    """Return where the conditions fail, and the points next to it, so that solid and dashed lines meet."""
    around = [True, *holds, True]
    return [not all(around[place : place + 3]) for place in range(len(holds))]
