"""docs/results/kim.md: the poster's three graphs, each with its exact counterpart, as a picture and as numbers."""

from collections.abc import Callable, Iterator
from pathlib import Path

from experiments.common import pictures
from experiments.kim.curves import (
    BY_MINIBATCH,
    CLIENTS,
    CURVES,
    DIMENSION,
    EPSILONS,
    EXAMPLES,
    MINIBATCH,
    POSTER,
    PROPOSED,
    bits,
)

DOCS = Path(__file__).parents[2] / "docs" / "results"

INTRODUCTION = """# Kim, Günlü and Schaefer (2021): its three graphs, with the exact ones

Written by `python -m experiments.kim.reproduce`; nothing is trained, and no random number is drawn. The poster plots
the noise σ², a lower bound on utility and an upper bound on the transmission rate against ε, for {clients} clients,
δ = {delta:g}, q = {rate:g}, d = {dimension:,}, μ = λ = C = 1, G = 5 and T = {rounds:,}. Our text of it has no pictures,
so these curves are drawn from its formulas, and can't be held against its own.

*Exact* is the least noise that keeps the promise, by the privacy-loss distribution: where each example is clipped
(sensitivity C), and where the minibatch's gradient is, as the poster has it (2C in the worst case). A bound below the
second does not keep the promise of the poster's algorithm. The [errata](../errata.md) say what is wrong with each.
"""

UTILITY = """## Utility against ε

The poster's bound λ²T/(μG²)·min(1/2, 1/(1 + dσ²)), at the noise of each curve, averaged over clients. It is not proved
for C < G, as here: the last column is what it would say at the exact noise, and no guarantee. Where examples are
clipped, noise is added to their sum and divided with it by the expected batch, which the poster doesn't give: that
curve has no place here.
"""

RATE = """## Transmission rate against ε

Bits for one gradient, rounded to steps of 1, at the proposed noise. *Printed* is the poster's upper bound; it is
below what the noise alone takes, so it bounds nothing. *At most* is true.
"""


def write(folder: Path = DOCS) -> Path:
    path = folder / "kim.md"
    path.write_text("\n".join(_page(folder)).rstrip() + "\n")
    return path


def _page(folder: Path) -> Iterator[str]:
    yield INTRODUCTION.format(
        clients=CLIENTS,
        delta=POSTER.delta,
        rate=POSTER.sampling_rate,
        dimension=DIMENSION,
        rounds=POSTER.rounds,
    )
    yield _picture(folder)
    yield ""
    yield from _noise()
    yield UTILITY
    labels = [curve.label for curve in BY_MINIBATCH]
    yield from _table(labels, lambda epsilon: [curve.utility(epsilon) for curve in BY_MINIBATCH])
    yield RATE
    yield from _table(["printed", "noise alone", "at most"], _bits, "{:,.0f}")


def _noise() -> Iterator[str]:
    yield "## Noise against ε"
    yield ""
    yield "σ² of one client, before the condition σ ≥ 1 is applied."
    yield ""
    yield from _table([curve.label for curve in CURVES], lambda epsilon: [curve.noise(epsilon) for curve in CURVES])
    rivals = [curve for curve in CURVES if not curve.exact and curve is not PROPOSED]
    least = all(PROPOSED.noise(epsilon) < rival.noise(epsilon) for epsilon in EPSILONS for rival in rivals)
    verdict = "holds" if least else "fails"
    yield f"- Theorem 1 asks for the least noise of the poster's four bounds: **{verdict}** at all {len(EPSILONS)} ε."
    broken = [epsilon for epsilon in EPSILONS if PROPOSED.applied_variance(epsilon) < MINIBATCH.noise(epsilon)]
    epsilons_text = ", ".join(f"{epsilon:g}" for epsilon in broken)
    yield f"- What it hands out keeps the promise of the poster's algorithm: **fails** at ε = {epsilons_text}."
    kept = all(PROPOSED.applied_variance(epsilon) >= EXAMPLES.noise(epsilon) for epsilon in EPSILONS)
    verdict = "holds" if kept else "fails"
    yield f"- And where each example is clipped: **{verdict}** at all {len(EPSILONS)} ε, with noise to spare."
    yield ""


def _bits(epsilon: float) -> list[float]:
    found = bits(epsilon)
    return [found.printed, found.noise_alone, found.corrected]


def _table(heads: list[str], row: Callable[[float], list[float]], form: str = "{:,.4g}") -> Iterator[str]:
    yield "| ε | " + " | ".join(heads) + " |"
    yield "|---:|" + "---:|" * len(heads)
    for epsilon in EPSILONS:
        yield f"| {epsilon:g} | " + " | ".join(map(form.format, row(epsilon))) + " |"
    yield ""


def _picture(folder: Path) -> str:
    figure, (noise, utility, rate) = pictures.figure(3)
    for curve in CURVES:
        style = {"linestyle": "--" if curve.exact else "-", "markersize": 3}
        pictures.line(noise, {epsilon: [curve.applied_variance(epsilon)] for epsilon in EPSILONS}, curve.label, **style)
        if curve in BY_MINIBATCH:
            pictures.line(utility, {epsilon: [curve.utility(epsilon)] for epsilon in EPSILONS}, curve.label, **style)
    for place, label in enumerate(("printed", "noise alone", "at most")):
        style = {"linestyle": "-" if place == 0 else "--", "markersize": 3}
        pictures.line(rate, {epsilon: [_bits(epsilon)[place]] for epsilon in EPSILONS}, label, **style)
    for axes, title, up in (
        (noise, "noise", "σ² of one client"),
        (utility, "utility", "lower bound on utility"),
        (rate, "rate", "bits a gradient"),
    ):
        pictures.label_axes(axes, title, "ε", up)
        axes.set_xscale("log")
    noise.set_yscale("log")
    utility.set_yscale("log")
    figure.tight_layout()
    return pictures.save_picture(figure, folder / "kim.svg", "Noise, utility and rate against ε").replace(
        ", with standard errors", ""
    )
