"""How `discreet tradeoff iterations` is drawn: the bound on the way, against E, against T, and for E as a rule of T."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from discreet.cli.tradeoff.iterations_answer import NAMES, WHOLE, Answer
from discreet.privacy.wording import compact

if TYPE_CHECKING:
    from discreet.planning.theory.fu_best_iterations import BoundRow
    from discreet.report.curves import Curve, Panel, Picture

CORRECTED, PRINTED, SILENT = "corrected", "as printed", "without noise"
UP = "bound on the mean of ‖θ − θ*‖²"
POINTS = 60  # of a curve over iterations
RULES: dict[str, Callable[[int], float]] = {  # paper 003, Figure 7
    "E = 1": lambda total: 1,
    "E = T^(1/3)": lambda total: total ** (1 / 3),
    "E = T^(1/2)": lambda total: total ** (1 / 2),
    "E = T^(2/3)": lambda total: total ** (2 / 3),
    "E = T": lambda total: total,
}


def picture(answer: Answer) -> "Picture":
    from discreet.report.curves import Picture

    noise = answer.setting.noise
    return Picture(
        title=f"DP-FedAvg, {NAMES[noise.kind]} noise of each client's own, ε = {compact(noise.epsilon)} (paper 003)",
        panels=(_on_the_way(answer), _against_local(answer), _against_total(answer), _by_rule(answer)),
        notes=tuple(f"{note}." for note in [*_edges(answer), *answer.notes()]),
    )


def _on_the_way(answer: Answer) -> "Panel":
    """Figures 1 and 2: Y_k while T is planned for."""
    from discreet.planning.theory.fu_convergence import convergence_bound
    from discreet.report.curves import Panel, curve

    setting, total, local = answer.setting, answer.total, answer.local
    last = total // local
    rounds = [*range(0, last, max(1, last // POINTS)), last]
    ks = [each * local for each in rounds]  # a model is there after whole rounds
    found = {
        form: [convergence_bound(setting, total, local, after=k, form=form) for k in ks]
        for form in ("corrected", "printed")
    }
    return Panel(
        title=f"On the way, T = {total:,} and E = {local:,}",
        across="local iterations so far, k",
        up=UP,
        curves=(
            curve(CORRECTED, ks, [each.total for each in found["corrected"]]),
            curve(PRINTED, ks, [each.total for each in found["printed"]], dashed=True),
            curve(SILENT, ks, [each.start + each.descent for each in found["corrected"]]),
        ),
        log_y=True,
    )


def _against_local(answer: Answer) -> "Panel":
    """Figures 5 and 6, with E* and where every client uploads once."""
    from discreet.report.curves import Limit, Mark, Panel, Point

    rows = answer.by_local
    best = answer.best_local("corrected")[WHOLE].value
    low = next(each for each in rows if each.local == best)
    once = answer.total * answer.setting.cohort / answer.setting.clients
    return Panel(
        title=f"How local, T = {answer.total:,}",
        across="iterations between two uploads, E",
        up=UP,
        curves=_curves(rows, [each.local for each in rows]),
        limits=(Limit("one upload each", once),),
        marks=(Mark(f"E* = {compact(best)}", Point(best, low.corrected.total)),),
        log_x=True,
        log_y=True,
    )


def _against_total(answer: Answer) -> "Panel":
    """Figures 3 and 4, with T*, where there is one."""
    from discreet.report.curves import Mark, Panel, Point

    rows = answer.by_total
    best = answer.best_total("corrected")[WHOLE].value
    marks = tuple(
        Mark(f"T* = {compact(best)}", Point(best, each.corrected.total)) for each in rows if each.total == best
    )
    return Panel(
        title=f"How long, E = {answer.local:,}{'; T* = ∞' if math.isinf(best) else ''}",
        across="local iterations in all, T",
        up=UP,
        curves=_curves(rows, [each.total for each in rows]),
        marks=marks,
        log_x=True,
        log_y=True,
    )


def _edges(answer: Answer) -> Iterator[str]:
    """What no mark can show: that no T is best, or that a best lies at an edge."""
    local, total = answer.best_local("corrected")[WHOLE], answer.best_total("corrected")[WHOLE]
    if local.reason:
        yield f"E* = {compact(local.value)} at T = {answer.total:,}: {local.reason}"
    if total.reason:
        yield f"T* = {'∞' if math.isinf(total.value) else compact(total.value)} at E = {answer.local:,}: {total.reason}"


def _by_rule(answer: Answer) -> "Panel":
    """Figure 7: E as a function of T, rounded, whether or not all clients then have as many turns."""
    from discreet.planning.theory.fu_convergence import convergence_bound
    from discreet.report.curves import Panel, curve

    longest = answer.by_total[-1].total
    totals = sorted({round(longest ** (place / POINTS)) for place in range(POINTS + 1)})
    curves = []
    for name, rule in RULES.items():
        found = [
            convergence_bound(answer.setting, total, min(total, max(1, round(rule(total))))).total for total in totals
        ]
        curves.append(curve(name, totals, found))
    return Panel(
        title="E as a rule of T",
        across="local iterations in all, T",
        up=f"{UP}, corrected",
        curves=tuple(curves),
        log_x=True,
        log_y=True,
    )


def _curves(rows: "Sequence[BoundRow]", xs: Sequence[float]) -> "tuple[Curve, ...]":
    from discreet.report.curves import curve

    return (
        curve(CORRECTED, xs, [each.corrected.total for each in rows]),
        curve(PRINTED, xs, [each.printed.total for each in rows], dashed=True),
        curve(SILENT, xs, [each.silent if math.isfinite(each.silent) else math.nan for each in rows]),
    )
