"""The tables of the page: which E and T are best, what is known of the losses, and every E that was run."""

import math
from collections.abc import Iterator

from discreet.planning.theory import fu_best_iterations
from experiments.theory import cases
from experiments.theory.case_results import CaseResults, Longer, Sweep
from experiments.theory.cases import WORLDS, Case

NOISES = {"laplace": "Laplace", "gaussian": "Gaussian"}
NAMES = {
    "turns": f"{WORLDS['turns'].clients} clients take turns",
    "everyone": f"{WORLDS['everyone'].clients} clients all join",
}


def best_locals(sweeps: list[Sweep]) -> Iterator[str]:
    yield "| | ε | Theorem 5 | explicit | whole T_l | measured | ratio | as good | error there | costs | Theorem 5 |"
    yield "|---|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|"
    for each in sweeps:
        setting, total = each.first.setting, each.first.total
        row = [
            f"{NAMES[each.first.world]}, T = {total}, {NOISES[each.first.kind]}",
            f"{each.first.epsilon:g}",
            f"{each.printed_local:.3g} → {each.advised_case.local}",
            f"{fu_best_iterations.explicit_best_local(setting, total).value:.3g}",
            str(each.bound_choice.local),
            f"**{each.best.local}**{' (end)' if each.at_the_end else ''}",
            f"{'≥ ' if each.at_the_end else ''}{each.ratio:g}",
            ", ".join(map(str, each.close)),
            error(each.measured, each.best),
            f"× {each.price(each.bound_choice):.3g}",
            f"× {each.price(each.advised_case):.3g}",
        ]
        yield "| " + " | ".join(row) + " |"
    yield ""


def best_totals(found: list[Longer]) -> Iterator[str]:
    yield "| | ε | " + " | ".join(f"T = {total}" for total in cases.TOTALS) + " | least at | of all whole T_l |"
    yield "|---|---:|" + "---:|" * (len(cases.TOTALS) + 2)
    for each in found:
        kind, epsilon = NOISES[each.cases[0].kind], f"{each.cases[0].epsilon:g}"
        values = " | ".join(error(each.measured, case) for case in each.cases)
        bounds = " | ".join(f"{case.bound.total:.3g}" for case in each.cases)
        yield f"| {kind}, measured | {epsilon} | {values} | **{each.best.total}** | |"
        yield f"| {kind}, bound | {epsilon} | {bounds} | {each.bound_choice.total} | {number(each.bound_total)} |"
    yield ""


def constants_table() -> Iterator[str]:
    yield "| | μ | λ | G | Γ | Y_0 | γ at E = 1 | proven |"
    yield "|---|---:|---:|---:|---:|---:|---:|---|"
    for name in WORLDS:
        case = Case(name, "gaussian", 1.0, 1, 1)
        of, reason = case.setting.constants, case.bound.reason
        told = [of.convexity, of.smoothness, of.gradient_bound, of.heterogeneity, of.start, case.setting.gamma(1)]
        row = " | ".join(f"{each:.3f}" for each in told)
        yield f"| {NAMES[name]} | {row} | {'no: ' + reason if reason else 'yes'} |"
    yield ""


def every_local(sweep: Sweep) -> Iterator[str]:
    first = sweep.first
    yield f"### {NAMES[first.world]}, {NOISES[first.kind]} noise, ε = {first.epsilon:g}, T = {first.total}\n"
    yield "| E | T_l | measured | bound | bound ÷ measured | as assumed |"
    yield "|---:|---:|---:|---:|---:|---|"
    for case in sweep.cases:
        turns = case.setting.turns(case.rounds)
        assumed = "yes" if sweep.measured.meets_assumptions(case) else _violation_text(sweep.measured, case)
        numbers = f"{error(sweep.measured, case)} | {case.bound.total:.4g} | {sweep.measured.slack(case):.3g}"
        yield f"| {case.local} | {turns} | {numbers} | {assumed} |"
    yield ""


def _violation_text(measured: CaseResults, case: Case) -> str:
    return f"no: gradients of {measured.steepest(case):.3g}, {100 * measured.cut(case):.2g} % cut"


def error(measured: CaseResults, case: Case) -> str:
    value, spread, _ = measured.error(case)
    return f"{value:.3g} ± {spread:.2g}"


def number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:g}"
