"""The tables of the page: noise, what was chosen without it, and every mean of a sweep."""

import math
from collections.abc import Callable, Collection, Iterator
from typing import Any

from experiments.common.means import mean, mean_text
from experiments.iterations.claims import Curve, Sweeps, name
from experiments.iterations.noise import FEDERATIONS, Federation
from experiments.iterations.points import GRIDS, Grid, Point

TUNED = """The paper gives no learning rate. Our {rated} is the best of {rates} by {on} {metric} after {T} iterations
without noise{clips}: **{rate:g}**{clip}."""


def noise() -> Iterator[str]:
    yield "| | the paper's ε | m, the paper | m, ours | √(E‖w‖²)/Ξ | ε as the paper counts | certified ε |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    firsts: dict[Federation, str] = {}
    for kind, federation in FEDERATIONS.items():
        firsts.setdefault(federation, kind)  # the noise does not depend on the learning rate
    for federation, kind in firsts.items():
        grid = GRIDS[kind]
        rounds = grid.tuned // grid.fixed_local
        turns = federation.turns(rounds, federation.cohort)
        for epsilon in grid.epsilons:
            if epsilon is not None:
                yield _noise_row(federation, epsilon, turns, f"{federation.name}, T_l = {turns}")
    yield ""


def _noise_row(federation: Federation, epsilon: float, turns: int, named: str) -> str:
    theirs, ours = federation.published_noise(epsilon, turns), federation.matched_noise(epsilon, turns)
    lines = [
        f"{epsilon:g}",
        f"{theirs:.3g}",
        f"{ours:.3g}",
        f"{federation.loudness(ours, federation.cohort):.3g}",
        f"{federation.claimed_epsilon(ours, turns):.1f}",
        f"{federation.certified_epsilon(ours, turns):.1f}",
    ]
    return f"| {named} | " + " | ".join(lines) + " |"


def tuning_table(sweeps: Sweeps) -> Iterator[str]:
    """Which rate and clip, and what they were chosen from."""
    measured, grid, kind = sweeps.measured, sweeps.measured.grid, sweeps.measured.kind
    several = len(grid.clips) > 1
    yield TUNED.format(
        on="validation" if sweeps.measured.is_validated() else "test",
        rated=grid.rated,
        rates=", ".join(f"{rate:g}" for rate in grid.rates),
        metric="loss" if grid.least else "accuracy",
        T=grid.tuned,
        clips=f" at the paper's ζ = {grid.clips[-1]:g}, then the smallest ζ that costs at most 1 %" if several else "",
        rate=sweeps.rate,
        clip=f", and ζ = **{sweeps.clip:g}** in L1" if several else "",
    )
    yield ""
    yield f"| {grid.rated} | " + " | ".join(f"ζ = {clip:g}" for clip in grid.clips) + " |"
    yield "|---:|" + "---:|" * len(grid.clips)
    for rate in grid.rates:
        points = [Point(kind, None, grid.tuned, grid.fixed_local, rate, clip) for clip in grid.clips]
        yield (
            f"| {rate:g} | " + " | ".join(mean_text(list(measured.by_seed(point).values())) for point in points) + " |"
        )
    yield ""


def swept(
    sweeps: Sweeps,
    curves: dict[float | None, Curve],
    what: str,
    paper: dict[Any, tuple[int, float, float]],
    among: Collection[int],
) -> Iterator[str]:
    """The best place of each curve and the worst among some, beside the paper's of every ε; then all numbers."""
    theirs = " the paper's |" if paper else ""
    worst_of = f"worst of {what} = {min(among)} to {max(among)}"
    yield f"| ε | certified ε | {what}* |{theirs} {unit(sweeps.measured.grid)} there |{theirs} {worst_of} |{theirs}"
    yield "|---:|" + "---:|" * (4 + 3 * bool(paper))
    for epsilon in sorted({*curves, *paper}, key=lambda epsilon: math.inf if epsilon is None else epsilon):
        ours = _extremes(sweeps, curves[epsilon], among) if epsilon in curves else ["not run"] * 3
        known = paper.get(epsilon, ("–", "–", "–"))
        row = [each for pair in zip(ours, map(str, known), strict=True) for each in pair] if paper else ours
        yield f"| {name(epsilon)} | {_certified_text(sweeps, epsilon)} | " + " | ".join(row) + " |"
    yield ""
    yield from every_mean(curves, what, lambda epsilon: f"ε = {name(epsilon)}")


def _extremes(sweeps: Sweeps, curve: Curve, among: Collection[int]) -> list[str]:
    at = sweeps.best(curve)
    values = [mean(list(found.values())).value for place, found in curve.items() if place in among]
    worst = max(values) if sweeps.measured.grid.least else min(values)
    return [str(at), mean_text(list(curve[at].values())), f"{worst:.2f}"]


def unit(grid: Grid) -> str:
    return "test loss" if grid.least else "test accuracy, %"


def _certified_text(sweeps: Sweeps, epsilon: float | None) -> str:
    """What the longest run's own card says; it is the same at every T and E, but for rounding."""
    if epsilon is None:
        return "no privacy"
    grid = sweeps.measured.grid
    found = sweeps.measured.certified_epsilon(
        Point(sweeps.measured.kind, epsilon, grid.totals[-1], grid.fixed_local, sweeps.rate, sweeps.clip)
    )
    return "–" if found is None else f"{found:.1f}"


def every_mean(curves: dict[Any, Curve], what: str, heading: Callable[[Any], str]) -> Iterator[str]:
    places = sorted({place for curve in curves.values() for place in curve})
    yield f"| {what} | " + " | ".join(map(heading, curves)) + " |"
    yield "|---:|" + "---:|" * len(curves)
    for place in places:
        row = " | ".join(mean_text(list(curve.get(place, {}).values())) for curve in curves.values())
        yield f"| {place} | {row} |"
    yield ""
