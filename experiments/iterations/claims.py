"""The paper's claims about T and E, held against what was run."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.common.means import Mean, gap_text, is_clear, mean, paired_difference
from experiments.common.verdicts import Verdict
from experiments.iterations.noise import FEDERATIONS
from experiments.iterations.point_results import PointResults, best
from experiments.iterations.points import RULES, TOTALS_BY_RULE, by_rule

Curve = dict[int, dict[int, float]]  # by place, then by seed
CHANCE = 10.0  # percent: a classifier of 62 classes below it has learned next to nothing
RULE = "T^(2/3)"
LEVEL = 3.0  # points of accuracy by which a curve that levels off may still move
LEVEL_TIMES = 1.25  # the same of losses, as T doubles; Theorem 3's bound may grow 1.12 times with Gaussian noise here


@dataclass(frozen=True)
class Sweeps:
    """The curves of one file's runs at the rate and clip that were chosen."""

    measured: PointResults
    rate: float
    clip: float

    def by_total(self) -> dict[float | None, Curve]:
        grid = self.measured.grid
        found = {epsilon: self.measured.by_total(epsilon, self.rate, self.clip) for epsilon in grid.epsilons}
        return {epsilon: curve for epsilon, curve in found.items() if curve}

    def by_local(self) -> dict[float | None, Curve]:
        grid = self.measured.grid
        found = {epsilon: self.measured.by_local(epsilon, self.rate, self.clip) for epsilon in grid.epsilons}
        return {epsilon: curve for epsilon, curve in found.items() if curve}

    def by_rule(self) -> dict[str, Curve]:
        return {
            rule: {point.total: values for point in points if (values := self.measured.by_seed(point))}
            for rule, points in by_rule(self.rate, self.clip).items()
        }

    def best(self, curve: Curve) -> int:
        return best(curve, self.measured.grid)

    @property
    def name(self) -> str:
        return self.measured.grid.name


def verdicts(sweeps: Sweeps) -> Iterator[Verdict]:
    return {"laplace": of_laplace, "gaussian": of_gaussian}[FEDERATIONS[sweeps.measured.kind].kind](sweeps)


def of_laplace(sweeps: Sweeps) -> Iterator[Verdict]:
    grid, totals, locals_, rules = sweeps.measured.grid, sweeps.by_total(), sweeps.by_local(), sweeps.by_rule()
    if _is_complete(totals, grid.epsilons, grid.totals):
        yield _finite_best(sweeps, totals)
        yield _best_place_moves(sweeps, totals, "T", rising=True)
    if _is_complete(locals_, grid.epsilons, grid.locals):
        yield _best_place_moves(sweeps, locals_, "E", rising=False)
    if _is_complete(rules, RULES, TOTALS_BY_RULE):
        yield _rule(rules)


def of_gaussian(sweeps: Sweeps) -> Iterator[Verdict]:
    grid, totals, locals_ = sweeps.measured.grid, sweeps.by_total(), sweeps.by_local()
    if _is_complete(totals, grid.epsilons, grid.totals):
        yield _loss_levels_off(sweeps, totals) if grid.least else _levels_off(sweeps, totals)
    if _is_complete(locals_, grid.epsilons, grid.locals):
        yield _best_place_moves(sweeps, locals_, "E", rising=False)


def _is_complete(curves: Mapping[Any, Curve], asked: Collection[Any], places: Collection[int]) -> bool:
    """Return whether every place of every curve was run; claims are judged only then."""
    return set(curves) == set(asked) and all(set(curve) == set(places) for curve in curves.values())


def _finite_best(sweeps: Sweeps, curves: dict[float | None, Curve]) -> Verdict:
    """Return whether both ends of each curve are clearly above its lowest place."""
    evidence, holds = [], True
    for epsilon, curve in curves.items():
        if epsilon is None:
            continue
        at, first, last = sweeps.best(curve), min(curve), max(curve)
        rises = [_times(curve[at], curve[end]) for end in (first, last)]
        holds = holds and first < at < last and all(is_clear(rise) for rise in rises)
        evidence.append(
            f"ε = {epsilon:g}: T* = {at}, and {_times_said(rises[0])} its loss at T = {first}, {_times_said(rises[1])} "
            f"at T = {last}"
        )
    return Verdict(f"{sweeps.name}: is there a finite best T?", _yes(holds), "; ".join(evidence) + ".")


def _best_place_moves(sweeps: Sweeps, curves: dict[float | None, Curve], what: str, *, rising: bool) -> Verdict:
    """Whether the best place moves one way with ε."""
    places = {epsilon: sweeps.best(curve) for epsilon, curve in curves.items()}
    row = list(places.values()) if rising else list(places.values())[::-1]
    steady, moved = row == sorted(row), row[0] < row[-1]
    evidence = ", ".join(f"{place} at ε = {name(epsilon)}" for epsilon, place in places.items())
    claim = f"{what}* rises with ε?" if rising else f"{what}* grows as ε falls?"
    verdict = "Holds" if steady and moved else "Holds but for a step back" if moved else "Does not hold"
    return Verdict(f"{sweeps.name}: {claim}", verdict, f"{what}* is {evidence}.")


def _rule(curves: dict[str, Curve]) -> Verdict:
    """Which rule is lowest at the longest T, and at which others T^(2/3) is."""
    means = {
        total: {rule: mean(list(curve[total].values())).value for rule, curve in curves.items()}
        for total in TOTALS_BY_RULE
    }
    lowest = {total: min(by, key=lambda rule: by[rule]) for total, by in means.items()}
    last = TOTALS_BY_RULE[-1]
    above = _times(curves[lowest[last]][last], curves[RULE][last])
    verdict = _yes(lowest[last] == RULE)
    if lowest[last] != RULE and not is_clear(above):
        verdict = "Can't be told from these runs"
    ends = ", ".join(f"{value:.1f} with E = {rule}" for rule, value in means[last].items())
    at = ", ".join(str(total) for total, rule in lowest.items() if rule == RULE) or "none"
    evidence = (
        f"At T = {last} the loss is {ends}: with {RULE}, {_times_said(above)} the lowest. It is the lowest at T = {at}."
    )
    return Verdict(f"Laplace: does E = {RULE} let the loss rise least?", verdict, evidence)


def _times(less: dict[int, float], found: dict[int, float]) -> Mean:
    """The logarithm of how many times larger a loss is: those that diverge do so by magnitudes."""
    return paired_difference(*({seed: math.log(value) for seed, value in by.items()} for by in (less, found)))


def _times_said(rise: Mean) -> str:
    return f"{math.exp(rise.value):.3g} times" + ("" if is_clear(rise) else " (not clear)")


def _levels_off(sweeps: Sweeps, curves: dict[float | None, Curve]) -> Verdict:
    """Whether the last step in T moves accuracy little, and it ends little below its best."""
    evidence, held, learned = [], {}, True
    for epsilon, curve in curves.items():
        if epsilon is None:
            continue
        at, (before, last) = sweeps.best(curve), sorted(curve)[-2:]
        step, fall = paired_difference(curve[before], curve[last]), paired_difference(curve[at], curve[last])
        held[epsilon] = abs(step.value) <= LEVEL and fall.value >= -LEVEL
        learned = learned and mean(list(curve[at].values())).value > CHANCE
        evidence.append(
            f"ε = {epsilon:g}: {gap_text(step)} points from T = {before} to {last}, and {gap_text(fall)} beside the "
            f"best (T = {at})"
        )
    verdict = _epsilons_text(held) if learned else f"Can't be told where less than {CHANCE:g} % is learned"
    return Verdict(f"{sweeps.name}: does accuracy level off in T?", verdict, "; ".join(evidence) + ".")


def _loss_levels_off(sweeps: Sweeps, curves: dict[float | None, Curve]) -> Verdict:
    """Whether the last step in T moves the loss little; it has no worst value to stop at, as accuracy has."""
    evidence, held = [], {}
    for epsilon, curve in curves.items():
        if epsilon is None:
            continue
        before, last = sorted(curve)[-2:]
        step = _times(curve[before], curve[last])
        held[epsilon] = abs(step.value) <= math.log(LEVEL_TIMES)
        evidence.append(f"ε = {epsilon:g}: {_times_said(step)} the loss of T = {before} at T = {last}")
    return Verdict(f"{sweeps.name}: does the loss level off in T?", _epsilons_text(held), "; ".join(evidence) + ".")


def _epsilons_text(held: dict[float, bool]) -> str:
    if all(held.values()) or not any(held.values()):
        return _yes(all(held.values()))
    return "Holds only at ε = " + ", ".join(f"{epsilon:g}" for epsilon, holds in held.items() if holds)


def _yes(holds: bool) -> str:
    return "Holds" if holds else "Does not hold"


def name(epsilon: float | None) -> str:
    return "∞" if epsilon is None else f"{epsilon:g}"
