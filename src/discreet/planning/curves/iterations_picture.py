"""The picture of `discreet tradeoff iterations`: the bound along training, against E, against T, and for E = T^a."""

import math
from collections.abc import Callable, Iterator, Sequence

from discreet.planning.curves.iterations_tradeoff import NOISE_NAMES, WHOLE, IterationsTradeoff
from discreet.planning.curves.sweep_panels import sweep_panel
from discreet.planning.theory.fu_best_iterations import BoundRow
from discreet.planning.theory.fu_convergence import ConvergenceBound, convergence_bound
from discreet.privacy.wording import compact
from discreet.report.curves import Limit, Mark, Panel, Picture, Point, curve

CORRECTED, PRINTED, SILENT = "corrected", "as printed", "without noise"
DISTANCE_BOUND = "bound on the mean of ‖θ − θ*‖²"
TOTAL_AXES = ("local iterations in all, T", DISTANCE_BOUND)
POINTS = 60  # of a curve over iterations
RULES: dict[str, Callable[[int], float]] = {  # Fu et al. 2021, Figure 7
    "E = 1": lambda total: 1,
    "E = T^(1/3)": lambda total: total ** (1 / 3),
    "E = T^(1/2)": lambda total: total ** (1 / 2),
    "E = T^(2/3)": lambda total: total ** (2 / 3),
    "E = T": lambda total: total,
}


def draw_iterations(tradeoff: IterationsTradeoff) -> Picture:
    """Draw the four panels of one setting."""
    noise = tradeoff.setting.noise
    return Picture(
        title=f"DP-FedAvg, each client's own {NOISE_NAMES[noise.kind]} noise, ε = {compact(noise.epsilon)} "
        "(Fu et al. 2021)",
        panels=(_training_panel(tradeoff), _local_panel(tradeoff), _total_panel(tradeoff), _rule_panel(tradeoff)),
        notes=tuple(f"{note}." for note in [*_edge_notes(tradeoff), *tradeoff.notes()]),
    )


def _training_panel(tradeoff: IterationsTradeoff) -> Panel:
    """Draw Y_k during training with noise planned for all T iterations (Figures 1 and 2)."""
    setting, total, local = tradeoff.setting, tradeoff.total, tradeoff.local
    last = total // local
    rounds = [*range(0, last, max(1, last // POINTS)), last]
    ks = [number * local for number in rounds]  # there is a model after whole rounds only

    def bound_at(k: int) -> tuple[ConvergenceBound, ConvergenceBound]:
        corrected, printed = (
            convergence_bound(setting, total, local, after=k, form=form) for form in ("corrected", "printed")
        )
        return corrected, printed

    bounds = dict(zip(ks, map(bound_at, ks), strict=True))
    return sweep_panel(
        f"During training, T = {total:,} and E = {local:,}",
        ("local iterations so far, k", DISTANCE_BOUND),
        ks,
        lambda k: k,
        {
            CORRECTED: lambda k: bounds[k][0].total,
            PRINTED: lambda k: bounds[k][1].total,
            SILENT: lambda k: bounds[k][0].start + bounds[k][0].descent,
        },
        dashed=(PRINTED,),
        log_y=True,
    )


def _local_panel(tradeoff: IterationsTradeoff) -> Panel:
    """Draw the bound against E, with E* and the E at which every client uploads once (Figures 5 and 6)."""
    best = tradeoff.best_local("corrected")[WHOLE].value
    lowest = next(row for row in tradeoff.local_rows if row.local == best)
    once = tradeoff.total * tradeoff.setting.cohort / tradeoff.setting.clients
    return _bound_panel(
        f"How many local iterations, T = {tradeoff.total:,}",
        ("iterations between two uploads, E", DISTANCE_BOUND),
        tradeoff.local_rows,
        lambda row: row.local,
        limits=(Limit("one upload each", once),),
        marks=(Mark(f"E* = {compact(best)}", Point(best, lowest.bounds["corrected"].total)),),
    )


def _total_panel(tradeoff: IterationsTradeoff) -> Panel:
    """Draw the bound against T, with T* where there is one (Figures 3 and 4)."""
    best = tradeoff.best_total("corrected")[WHOLE].value
    marks = tuple(
        Mark(f"T* = {compact(best)}", Point(best, row.bounds["corrected"].total))
        for row in tradeoff.total_rows
        if row.total == best
    )
    title = f"How long, E = {tradeoff.local:,}{'; T* = ∞' if math.isinf(best) else ''}"
    return _bound_panel(title, TOTAL_AXES, tradeoff.total_rows, lambda row: row.total, marks=marks)


def _rule_panel(tradeoff: IterationsTradeoff) -> Panel:
    """Draw the bound for E as a function of T, rounded, even where clients then join unequally often (Figure 7)."""
    longest = tradeoff.total_rows[-1].total
    totals = sorted({round(longest ** (place / POINTS)) for place in range(POINTS + 1)})

    def bounds(rule: Callable[[int], float]) -> list[float]:
        pairs = ((total, min(total, max(1, round(rule(total))))) for total in totals)
        return [convergence_bound(tradeoff.setting, total, local).total for total, local in pairs]

    x_label, y_label = TOTAL_AXES
    curves = tuple(curve(name, totals, bounds(rule)) for name, rule in RULES.items())
    return Panel("E as a rule of T", x_label, f"{y_label}, corrected", curves, log_x=True, log_y=True)


def _edge_notes(tradeoff: IterationsTradeoff) -> Iterator[str]:
    """Yield what no mark can show: that no T is best, or that the best value is at an edge."""
    local, total = tradeoff.best_local("corrected")[WHOLE], tradeoff.best_total("corrected")[WHOLE]
    if local.reason:
        yield f"E* = {compact(local.value)} at T = {tradeoff.total:,}: {local.reason}"
    if total.reason:
        value = "∞" if math.isinf(total.value) else compact(total.value)
        yield f"T* = {value} at E = {tradeoff.local:,}: {total.reason}"


def _bound_panel(
    title: str,
    axes: tuple[str, str],
    rows: Sequence[BoundRow],
    x: Callable[[BoundRow], float],
    *,
    limits: tuple[Limit, ...] = (),
    marks: tuple[Mark, ...] = (),
) -> Panel:
    curves: dict[str, Callable[[BoundRow], float]] = {
        CORRECTED: lambda row: row.bounds["corrected"].total,
        PRINTED: lambda row: row.bounds["printed"].total,
        SILENT: lambda row: row.without_noise if math.isfinite(row.without_noise) else math.nan,
    }
    return sweep_panel(
        title, axes, rows, x, curves, dashed=(PRINTED,), limits=limits, marks=marks, log_x=True, log_y=True
    )
