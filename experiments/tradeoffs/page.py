"""docs/results/tradeoffs.md from the results: whether Kim et al.'s trade-offs show here, with every number."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from discreet.experiment.comparison.comparison_results import Result
from experiments.common import pictures
from experiments.common.means import mean, mean_text
from experiments.tradeoffs import tables
from experiments.tradeoffs.claims import CLIPPINGS, verdicts
from experiments.tradeoffs.points import EPSILONS, HERE
from experiments.tradeoffs.rate import STEP
from experiments.tradeoffs.row_results import RowResults

DOCS = HERE.parents[1] / "docs" / "results"

INTRODUCTION = """# Privacy, utility and rate (Kim, Günlü & Schaefer 2021): its trade-offs, measured

Written by `python -m experiments.tradeoffs.reproduce --page` from `experiments/tradeoffs/results.jsonl`. The paper has
bounds and no experiment: more privacy (a smaller ε) means more noise, less utility and a higher transmission rate, and
clients may differ. Here its algorithm (`fl_sgd_gaussian`) trains a linear classifier of 7,850 parameters on 6,000
examples of MNIST, dealt out to ten clients.

Numbers are means over {seeds} seeds ± their standard errors, after the last round, on all 10,000 test images; a
difference is clear by a two-sided t test at 5 %, paired by seed. Each row has the learning rate η with the least test
loss, of three to six around it; those, and the choice among them, were made on the same test images and seeds (some of
them in earlier runs that are not kept), which flatters every row a little, and which no ε here covers.
{runs} runs, {minutes:.0f} minutes on {device}. Runs are seeded, which protects nobody: what is certified is certified
of the same run without a seed. ε is for one example against the server, at δ = 1e-5.
"""

ALIKE = """## Everybody alike: ε from {first:g} to {last:g} over 100 rounds

600 examples and q = 0.1 for each of ten clients, C = 1. Where **examples** are clipped, a client sends
(Σ clip(∇ℓ_i, C) + N(0, C²σ²))/(q·n): sensitivity C, and noise of Cσ/60 on every coordinate that is sent. Where the
**minibatch's** mean is clipped, as in the paper, it sends clip(mean, C) + N(0, C²σ²): sensitivity 2C, which the paper
counts as C, so at equal certified ε its σ is twice as large, and it is not divided by anything. Without privacy (whole
gradients, no clip, no noise) the model reaches {ceiling} % and a loss of {least}; one that knows nothing has about
10 % and ln 10 = 2.303.

The last columns are rates in **bits a coordinate**, for numbers rounded to steps of {step:g}·C. The paper's rate is a
differential entropy, which gives a number of bits only for a chosen step; and its bound adds two of them, which
does not bound the entropy of a sum, and here is below what the noise alone takes. Instead, with s the deviation of the
noise that is sent (here always more than the step), and m·C² ≥ E‖mean‖² (m = 1; for clipped examples 1 + (1−q)/(qn),
as batches vary):

    at most       ½·log2(2πe·(s² + m·C²/d)) − log2(step)
    noise alone   ½·log2(2πe·s²) − log2(step)
    in a code     −log2 of a rounded coordinate's probability under N(0, s² + m·C²/d), of the first round's uploads
    as printed    log2(2πe·C²σ/√d) − log2(step), the paper's

An arithmetic coder reaches *in a code*, for both ends know s. What is really sent is {sent:g} bits a coordinate, at
every ε.
"""

COUNTED = """## What a tighter count is worth

The σ² that each accountant asks for, for the same promise (q = 0.1, 100 rounds, sensitivity C). The moments accountant
tries moments up to 32 only, so it can't say less than ln(1/δ)/32 = 0.36.
"""

PAPERS = """The paper's own bounds ask for this σ², before its σ ≥ 1: as printed, but for the square that AC1 lacks.
None of them holds here. They need q < 1/(16σ) and σ ≥ 1, so q < 1/16; they drop O(·) terms; and their factor 4 fits
neither sensitivity (2 for C, 8 for 2C). `discreet tradeoff ldp` has them in the paper's own setting, and its utility,
which is not on this page: it leaves out what clipping takes away, so it holds only where C is at least the largest
gradient.
"""

OWN = """## Clients who differ

Ten clients whose examples are dealt by a Dirichlet draw (α = 1), so that sizes and labels differ; every second one
draws at q = 0.1, the others at 0.05; and two each ask for ε = 0.5, 1, 2, 4 and 8. Each has the noise that its own
promise takes over 100 rounds. Beside it, everyone at the smallest, the mean and the largest of these. Examples are
clipped; clients count by their expected batches q_k·n_k (the paper's are the batches as drawn, which are not public),
so the noise of the average is C·√Σσ_k²/Σq_k·n_k.
"""

STRICT = """The two clients who ask for most privacy bring {share:.0f} % of the average's noise variance. Each client's
own numbers, with the ε that its card says; examples for each seed; the last two columns belong to the section below:
"""

LEAVING = """## Clients whose budgets end

The same clients and budgets, but one noise for all, σ = {noise:g}, over {rounds} rounds: a client that can't pay for a
round leaves before it, which follows from public numbers alone; the others continue, and count for the whole.
"""


def write(results: Sequence[Result], folder: Path = DOCS) -> Path:
    """The page and its pictures; the path of the page."""
    path = folder / "tradeoffs.md"
    path.write_text("\n".join(_page(RowResults(results), folder)) + "\n")
    return path


def _page(measured: RowResults, folder: Path) -> Iterator[str]:
    yield _introduction(measured)
    yield "## What had to hold\n"
    for verdict in verdicts(measured):
        yield verdict.line()
    yield ""
    yield from _alike(measured, folder)
    yield _refill_paragraphs(COUNTED)
    yield from tables.accountant_table()
    yield _refill_paragraphs(PAPERS)
    yield from tables.papers()
    yield _refill_paragraphs(OWN)
    yield from tables.promises(measured)
    yield _refill_paragraphs(STRICT.format(share=100 * tables.strictest(measured)))
    yield from tables.clients(measured)
    yield from _departure_section(measured, folder)


def _introduction(measured: RowResults) -> str:
    runs = measured.runs()
    return _refill_paragraphs(
        INTRODUCTION.format(
            seeds=len({each["seed"] for each in runs}),
            runs=len(runs),
            minutes=sum(each["seconds"] for each in runs) / 60,
            device=" and ".join(sorted({each["device"] for each in runs})),
        )
    )


def _alike(measured: RowResults, folder: Path) -> Iterator[str]:
    without, plan = measured.row("without", "without"), measured.plan("alike", f"example {EPSILONS[0]:g}")
    yield _refill_paragraphs(
        ALIKE.format(
            first=EPSILONS[0],
            last=EPSILONS[-1],
            step=STEP,
            sent=plan.lines[0]["sent"],
            ceiling=mean_text(list(without.accuracy.values())),
            least=mean_text(list(without.loss.values()), 3),
        )
    )
    for clipping in CLIPPINGS:
        yield f"### {'Examples' if clipping == 'example' else 'Minibatches'} clipped\n"
        yield from tables.alike(measured, clipping)
    yield _tradeoff(measured, folder / "tradeoffs-epsilon.svg")
    yield ""


def _tradeoff(measured: RowResults, path: Path) -> str:
    """Utility and rate against ε, side by side."""
    figure, (utility, rate) = pictures.figure(2)
    for clipping, colour in zip(CLIPPINGS, ("C0", "C1"), strict=True):
        rows = {epsilon: measured.row("alike", f"{clipping} {epsilon:g}") for epsilon in EPSILONS}
        found = {epsilon: measured.plan("alike", f"{clipping} {epsilon:g}") for epsilon in EPSILONS}
        bounds = [plan.uploads(clipping == "minibatch")[0].max_bits() for plan in found.values()]
        accuracies = {epsilon: list(row.accuracy.values()) for epsilon, row in rows.items()}
        codes = {epsilon: list(plan.code.values()) for epsilon, plan in found.items()}
        pictures.line(utility, accuracies, f"{clipping} clipped", color=colour, markersize=4)
        pictures.line(rate, codes, f"{clipping} clipped, in a code", color=colour, markersize=4, linestyle="")
        rate.plot(EPSILONS, bounds, color=colour, label=f"{clipping} clipped, at most")
    ceiling = mean(list(measured.row("without", "without").accuracy.values())).value
    sent = measured.plan("alike", f"example {EPSILONS[0]:g}").lines[0]["sent"]
    utility.plot(EPSILONS, [ceiling] * len(EPSILONS), "k:", label="without privacy")
    rate.plot(EPSILONS, [sent] * len(EPSILONS), "k:", label="really sent")
    for axes in (utility, rate):
        pictures.logarithmic(axes)
        axes.set_ylim(bottom=0)
    pictures.label_axes(utility, "Utility", "certified ε", "test accuracy, %")
    pictures.label_axes(rate, f"Rate, at steps of {STEP:g}·C", "certified ε", "bits a coordinate")
    return pictures.save_picture(figure, path, "Test accuracy and bits a coordinate against ε, for both ways to clip")


def _departure_section(measured: RowResults, folder: Path) -> Iterator[str]:
    plan = measured.plan("leaving", "leaving")
    yield _refill_paragraphs(
        LEAVING.format(noise=plan.client_values("noise_multiplier")[0], rounds=int(max(plan.client_values("rounds"))))
    )
    yield from tables.departures(measured)
    yield _over_rounds(measured, folder / "tradeoffs-leaving.svg")


def _over_rounds(measured: RowResults, path: Path) -> str:
    """Accuracy round by round at the rate that is best in the end, and when clients leave."""
    lasts = [int(each) for each in measured.plan("leaving", "leaving").client_values("rounds")]
    best_rate = measured.row("leaving", "leaving", after=max(lasts)).rate
    by = {at: mean(values) for at, values in sorted(measured.history("leaving", "leaving", best_rate).items())}
    figure, (axes,) = pictures.figure()
    heights, errors = [each.value for each in by.values()], [each.error or 0.0 for each in by.values()]
    axes.plot(list(by), heights, label=f"going on, η = {best_rate:g}")
    axes.fill_between(list(by), *_band(heights, errors), alpha=0.25)
    for after in sorted({each for each in lasts if each < max(lasts)}):
        axes.axvline(after, color="grey", linestyle=":", label=_new_label(axes, "a client leaves"))
    first = min(lasts)
    stopped = measured.row("leaving", "leaving", after=first)
    height = mean(list(stopped.accuracy.values())).value
    axes.plot([first, max(lasts)], [height] * 2, "k--", label=f"stopped at the first, η = {stopped.rate:g}")
    pictures.label_axes(axes, "One noise, own budgets: those who are spent leave", "round", "test accuracy, %")
    return pictures.save_picture(figure, path, "Test accuracy over rounds while clients leave")


def _band(heights: list[float], errors: list[float]) -> tuple[list[float], list[float]]:
    pairs = list(zip(heights, errors, strict=True))
    return [height - error for height, error in pairs], [height + error for height, error in pairs]


def _new_label(axes: Any, label: str) -> str:
    """The label, if the legend doesn't have it yet."""
    return "_" if label in axes.get_legend_handles_labels()[1] else label


def _refill_paragraphs(text: str) -> str:
    """Wrap paragraphs again after numbers were filled in; leave headings and formulas as they are."""
    parts = text.strip("\n").split("\n\n")
    return "\n\n".join(part if part.startswith(("#", "    ")) else textwrap.fill(part, 120) for part in parts) + "\n"
