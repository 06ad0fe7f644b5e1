"""docs/results/theory.md: Theorem 3 beside what was measured, and which E and T each would choose."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from discreet.experiment.comparison.comparison_results import Result
from experiments.common import pictures
from experiments.common.means import is_clear
from experiments.common.verdicts import Verdict
from experiments.theory import cases, numbers, tables
from experiments.theory.case_results import CaseResults, Longer, Sweep
from experiments.theory.cases import DISTANCE, EXAMPLES, LOCAL, MARGIN, PARAMETERS, SEEDS, SPREAD, TURNS, Case
from experiments.theory.tables import NAMES, NOISES

DOCS = cases.HERE.parents[1] / "docs" / "results"

INTRODUCTION = f"""# Theory beside simulation: Theorem 3 of Fu et al. 2021

Written by `python -m experiments.theory.reproduce` from `experiments/theory/results.jsonl`. Theorem 3 bounds
Y_T = E‖θ_T − θ*‖² after T local iterations, E of them between two uploads; each upload carries noise of the client's
own. Here it is put beside what happens on a task that it is about: linear regression with {PARAMETERS} parameters,
whose loss is strongly convex. Data is synthetic: every client has {EXAMPLES} examples with standard normal inputs, and
weights of its own, about {SPREAD:g} away from common weights of norm {DISTANCE:g}. Runs are by the recipe `ldp_fedavg`
with the theorem's learning rate, (2/μ)/(k + γ), in double precision. Noise is what certifies ε for all of a client's
data against the server, so sensitivities are the true ones, 2ζΣη. There are {SEEDS} seeds, and in each the clients take
turns in another order. Numbers are means ± standard errors. Runs are seeded, which protects nobody.

Not all of this was fixed beforehand. A first pair of federations, of 100 clients with cohorts of 10 and of 10 clients,
with common weights of norm 2, was run with as many seeds and then given up: at its smallest ε models ended further from
the best one than where they had started. It is not on this page. The bound was above every mean there too, its E* was
too small with Laplace noise and as good as the best with Gaussian noise. Otherwise than here, the shortest T was best
with both noises, Theorem 5's T^(2/3) was clearly worse than the best E in two of four cases, and its √T, with Gaussian
noise, was not clearly worse in one of three.
"""

BEST = """## Which E is best

"Whole T_l" is where the whole bound is least, among the E that divide T into as many turns for every client; ratio is
the measured best over it. A best marked "end" is the largest of those E: a larger one, if there were one, might be
better still, and the ratio is a lower bound. "As good" are those that a two-sided t test at 5 % can't tell from the
best, seed by seed; the best is picked by the same runs, which flatters it a little. "Costs" is the error at the bound's
E over the least; the last column is the same of Theorem 5, which prints E = T^(z/(z+1)), taken to the nearest E that
was run. Explicit is the formula for T well over γ.
"""

LONG = f"""## Which T is best, at E = {LOCAL}

{NAMES["turns"]}; every T is a run of its own, with noise for that T.
"""

KNOWN = f"""## What the theorem takes as known

From a pilot on the same synthetic data (`discreet.planning.pilot`); on private data, no ε would cover it. G is
{MARGIN:g} times the largest gradient that a run without noise meets, and ζ cuts nothing up to it: ζ = G in L2 with
Gaussian noise, ζ = √p·G in L1 with Laplace noise. Where everyone joins, the bound is proven without changes, as long as
no gradient exceeds G. Where clients take turns it is not: the proof draws cohorts at random.
"""

EVERY = """## Every E

The bound is the corrected one, for the noise that was added. "As assumed" says whether gradients stayed within G (the
root of the mean square, over seeds, of each run's largest) and the clip cut none, where a round began.
"""


def write(found: Mapping[str, Result], folder: Path = DOCS) -> Path:
    """The page and its picture; the path of the page."""
    path = folder / "theory.md"
    path.write_text("\n".join(_page(CaseResults(found), folder)).rstrip("\n") + "\n")
    return path


def _page(measured: CaseResults, folder: Path) -> Iterator[str]:
    sweeps = [Sweep(measured, cases.by_local(*each)) for each in cases.sweeps()]
    longer = [Longer(measured, cases.by_total(*each)) for each in cases.LONG]
    yield INTRODUCTION
    yield "## What had to hold\n"
    yield from (verdict.line() for verdict in verdicts(measured, sweeps, longer))
    yield ""
    yield _picture(measured, folder / "theory.svg")
    yield ""
    yield BEST
    yield from tables.best_locals(sweeps)
    yield LONG
    yield from tables.best_totals(longer)
    yield KNOWN
    yield from tables.constants_table()
    yield EVERY
    for sweep in sweeps:
        yield from tables.every_local(sweep)
    yield "## The paper's own numbers\n"
    yield from numbers.sections()


def verdicts(measured: CaseResults, sweeps: list[Sweep], longer: list[Longer]) -> Iterator[Verdict]:
    yield _bound_holds(measured)
    by_kind = {kind: [each for each in sweeps if each.first.kind == kind] for kind in NOISES}
    yield from (_agrees(kind, found) for kind, found in by_kind.items())
    yield _bound_errs_low(sweeps)
    yield from (_advice_verdict(kind, found) for kind, found in by_kind.items())
    yield from map(_rises, longer)


def _bound_holds(measured: CaseResults) -> Verdict:
    """Check that no mean is above its bound, and count the cases in which the theorem's assumptions held."""
    slack = {case: measured.slack(case) for case in cases.all_cases()}
    assumed = [case for case in slack if measured.meets_assumptions(case)]
    tightest, loosest = min(slack, key=lambda case: slack[case]), max(slack, key=lambda case: slack[case])
    below = [case for case in slack if slack[case] < 1]
    evidence = (
        f"Where it is tightest it is {slack[tightest]:.3g} times the mean ({_case_name(tightest)}), where it is "
        f"loosest {slack[loosest]:,.0f} times ({_case_name(loosest)}). In {len(assumed)} of {len(slack)} cases "
        "gradients were as it assumes; in the others noise made them larger, or the clip cut some. With so much slack "
        f"this is a weak test: a formula that comes out up to {slack[tightest]:.3g} times too small would pass it too."
    )
    verdict = "Holds" if not below else "Does not hold at " + "; ".join(map(_case_name, below))
    return Verdict("Is the bound never below the measured mean?", verdict, evidence)


def _agrees(kind: str, sweeps: list[Sweep]) -> Verdict:
    """Whether the bound's E is the measured best one, or as good."""
    good = [each for each in sweeps if each.bound_choice.local in each.close]
    evidence = "; ".join(
        f"{_sweep_name(each)}: {each.bound_choice.local} by the bound, {each.best.local} measured, a ratio of "
        f"{'at least ' if each.at_the_end else ''}{each.ratio:g}" + (", and as good" if each in good else "")
        for each in sweeps
    )
    if ended := [each for each in sweeps if each.at_the_end]:
        evidence += (
            f". In {len(ended)} of these {len(sweeps)} the best is the largest E that whole turns allow, so where the "
            "error would be least isn't known"
        )
    return Verdict(
        f"{NOISES[kind]}: is the bound's E* as good as the measured best?", _count(good, sweeps), evidence + "."
    )


def _advice_verdict(kind: str, sweeps: list[Sweep]) -> Verdict:
    """Whether Theorem 5's E, or the nearest that whole turns allow, is as good as the measured best."""
    good = [each for each in sweeps if each.advised_case.local in each.close]
    prices = [each.price(each.advised_case) for each in sweeps]
    rule = {"laplace": "T^(2/3)", "gaussian": "√T"}[kind]
    span = f"{min(prices):.3g} to {max(prices):.3g} times the least error" if max(prices) > 1 else "nothing"
    evidence = f"Taking the nearest E that whole turns allow costs {span}."
    if cut := sorted({(each.printed_local, each.advised_case.local) for each in sweeps if each.is_cut}):
        each_cut = ", ".join(f"from {printed:.3g} to {local}" for printed, local in cut)
        evidence += (
            f" In {sum(each.is_cut for each in sweeps)} of {len(sweeps)} cases that was a cut, {each_cut}, the largest "
            f"E there is: what {rule} itself would cost was not measured."
        )
    return Verdict(f"{NOISES[kind]}: is Theorem 5's E = {rule} as good?", _count(good, sweeps), evidence)


def _count(good: list[Sweep], all_: list[Sweep]) -> str:
    return {0: "Does not hold", len(all_): "Holds"}.get(len(good), f"Holds in {len(good)} of {len(all_)} cases")


def _bound_errs_low(sweeps: list[Sweep]) -> Verdict:
    """Whether the bound errs towards small E alone."""
    over = [
        each
        for each in sweeps
        if each.bound_choice.local > each.best.local and each.bound_choice.local not in each.close
    ]
    dearest = max(sweeps, key=lambda each: each.price(each.bound_choice))
    evidence = (
        "It counts what clients drift apart in E iterations as 8(E−1)²G², as if each walked its whole gradient away "
        "from all others. So with Laplace noise its E* is the least to try, and not the best: taking it costs up to "
        f"{dearest.price(dearest.bound_choice):.3g} times the error ({_sweep_name(dearest)})."
    )
    return Verdict("Where the bound's E* is wrong, is it too small?", "Does not hold" if over else "Holds", evidence)


def _rises(longer: Longer) -> Verdict:
    """Whether the longest T is clearly worse than the best, as Corollary 5.1 says for Laplace noise."""
    kind = longer.cases[0].kind
    best, last = longer.ends
    clear = best != last and is_clear(longer.rise)
    evidence = (
        f"Least at T = {best.total}, and {math.exp(longer.rise.value):.3g} times that at T = {last.total}, by the "
        f"geometric mean{'' if clear else ' (not clear)'}; the bound is least at T = "
        f"{tables.number(longer.bound_total)}, of all whole T_l."
    )
    if kind == "gaussian":
        evidence += " The paper says of Gaussian noise only that the error levels off."
    return Verdict(f"{NOISES[kind]}: is there a finite best T?", "Holds" if clear else "Can't be told", evidence)


def _sweep_name(sweep: Sweep) -> str:
    return f"{NAMES[sweep.first.world]}, {NOISES[sweep.first.kind]}, ε = {sweep.first.epsilon:g}"


def _case_name(case: Case) -> str:
    return f"{NAMES[case.world]}, {NOISES[case.kind]}, ε = {case.epsilon:g}, T = {case.total}, E = {case.local}"


def _picture(measured: CaseResults, path: Path) -> str:
    """Clients who take turns: measured as lines with their errors, bounds dashed in the same colour, stars at E*."""
    figure, axes = pictures.figure(panels=len(NOISES))
    for panel, (kind, epsilons) in zip(axes, TURNS.epsilons, strict=True):
        for place, epsilon in enumerate(epsilons):
            sweep, colour = Sweep(measured, cases.by_local(TURNS.name, kind, epsilon)), f"C{place}"
            errors = {case.local: list(measured.errors(case).values()) for case in sweep.cases}
            pictures.line(panel, errors, f"measured, ε = {epsilon:g}", color=colour, markersize=4)
            bounds = {case.local: case.bound.total for case in sweep.cases}
            panel.plot(list(bounds), list(bounds.values()), "--", color=colour, label=f"bound, ε = {epsilon:g}")
            panel.plot([sweep.best.local], [measured.error(sweep.best).value], "*", color=colour, markersize=12)
            panel.plot([sweep.bound_choice.local], [sweep.bound_choice.bound.total], "*", color=colour, markersize=12)
        panel.set_yscale("log")
        across, up = "iterations between two uploads, E (★ least)", "E‖θ_T − θ*‖²"
        pictures.label_axes(panel, f"{NOISES[kind]}, {NAMES[TURNS.name]}, T = {TURNS.total}", across, up)
        panel.legend(fontsize=7, loc="center right", bbox_to_anchor=(1, 0.57))  # between bounds and runs
        pictures.logarithmic(panel)
    return pictures.save_picture(figure, path, "The measured error and Theorem 3's bound against E")
