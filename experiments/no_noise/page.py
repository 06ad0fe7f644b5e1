"""docs/results/no_noise.md from the results: the noise of the public code, and what its setting gives without it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy import stats

from discreet.experiment.comparison.comparison_results import Result
from experiments.common.means import Mean, mean, mean_text
from experiments.no_noise.cells import HERE, SEEDS, SILENT, WORK, Variant, list_variants, results, select_results
from experiments.no_noise.reproduce import DRAWS

DOCS = HERE.parents[1] / "docs" / "results"
GAIN, RATIO = 16, 0.23  # the paper: "roughly by 16% points", "corresponding to 23 %"
NAMES = {"epoch": "one epoch a round", "step": "one step a round"}

INTRODUCTION = """# Heikkilä (2025): the noise of its public code

Written by `python -m experiments.no_noise.reproduce --page` from `experiments/no_noise/draws.jsonl` and
`experiments/no_noise/results.jsonl`. The paper's algorithm adds Skellam noise to every sum of gradients. Its public
code (mixheikk/DPFL-with-SecAgg-paper, commit 39a206f, `skellam_utils.py`) draws it as the difference of two numbers
from `torch.poisson`, in single precision, at a rate that has the scale of the lattice to the fourth power instead of
the second. `experiments/no_noise/draws.py` computes that rate for four of its settings, and draws as the code does.

## What is drawn

A deviation of 0 means that all {draws:,} differences are exactly 0. Rows with a setting are in units of a gradient:
the deviation that the paper's noise has for one client, and the one that is drawn. The others are `torch.poisson` by
itself, at smaller rates, and at the one that the first setting would take with the right power.
"""

RUNS = """## Its Fashion-MNIST setting, with and without noise

All settings are those of its code: pixels from 0 to 255, ten clients, 20 rounds, its clips, learning rates and momenta,
with one epoch of 11 steps a round or with one step; {seeds} seeds, as in the paper. *With noise* has the noise that the
paper claims: each client adds its own Gaussian noise. *Without* has a noise multiplier of {silent:g}, because the
trainer needs one above 0. That is {epoch_share:.1f} % of the claimed noise for one epoch a round and
{step_share:.1f} % for one step a round. The certified ε of these runs is at least {least_epsilon:,.0f}, so there is no
guarantee. No run here keeps ε = 1.

The paper prints no numbers beside its Figure 1. It says that an epoch is better than a step by roughly 16 points,
which is 23 %: so about {base:.1f} % and {top:.1f} %; by the rounding of both, the second is between {least:.1f} and
{most:.1f} %.
"""

FAIR = """## What this means, and what it does not

- The code at that commit adds no noise at its own settings; this follows from its formula and from `torch.poisson`, on
  a CPU and on a GPU.
- That its figures were made so is an inference. It rests on the table above: without noise its setting gives what the
  figure shows, with the noise it doesn't. Figures may have been made with another version of the code or of PyTorch.
- Nothing here touches the paper's mathematics of one step a round, its Table 1, or its accounting, which our accountant
  reproduces ([distributed](distributed.md)). Theorem 4.6 fails for [another reason](../notes/local_steps.md).
- Its advantage of an epoch over a step is real as training without noise; with noise it is in the tables of
  [settings tuned on validation data](tuned.md).
"""


def write(found: list[Result] | None = None, folder: Path = DOCS) -> Path:
    path = folder / "no_noise.md"
    path.write_text("\n".join(_page(results() if found is None else found)).rstrip() + "\n")
    return path


def _page(found: list[Result]) -> Iterator[str]:
    lines = [json.loads(line) for line in (HERE / DRAWS).read_text().splitlines()]
    yield INTRODUCTION.format(draws=lines[0]["draws"])
    yield from _draws(lines)
    base = GAIN / RATIO
    least, most = (each / share + each for each, share in ((GAIN - 0.5, RATIO + 0.005), (GAIN + 0.5, RATIO - 0.005)))
    yield RUNS.format(
        seeds=SEEDS,
        silent=SILENT,
        epoch_share=_percent_of_claimed_noise("epoch"),
        step_share=_percent_of_claimed_noise("step"),
        least_epsilon=min(each["epsilon"] for each in found if each["swept"]["noise"] == "no"),
        base=base,
        top=base + GAIN,
        least=least,
        most=most,
    )
    yield from _runs(found, least, most)
    yield FAIR
    seconds = sum(each["seconds"] for each in found)
    yield (
        f"{len(found)} of {len(list_variants()) * SEEDS} runs were made, on one NVIDIA H200 that others shared: "
        f"{seconds:.0f} seconds, added up over runs. Draws: PyTorch "
        + ", ".join(sorted({each["torch"] for each in lines}))
        + "."
    )


def _percent_of_claimed_noise(work: str) -> float:
    return 100 * SILENT / WORK[work][0].noise_multiplier


def _draws(lines: list[dict[str, Any]]) -> Iterator[str]:
    yield "| | device | rate | deviation that is meant | deviation that is drawn | distinct values |"
    yield "|---|---|---:|---:|---:|---:|"
    for each in lines:
        named = each["setting"] or "`torch.poisson` by itself"
        text = f"{each['intended']:,.6g} | {each['deviation']:,.6g} | {each['distinct']:,}"
        yield f"| {named} | {each['device']} | {each['rate']:.3g} | {text} |"
    yield ""


def _runs(found: list[Result], least: float, most: float) -> Iterator[str]:
    yield "| | noise | test accuracy, last round | 95 % interval of the mean |"
    yield "|---|---|---:|---|"
    means = {}
    for each in list_variants():
        values = [100 * run["metrics"]["accuracy"] for run in select_results(found, each).values()]
        if not values:
            yield f"| {NAMES[each.work]} | {each.swept['noise']} | – | – |"
            continue
        means[each] = mean(values)
        low, high = _interval(means[each])
        yield f"| {NAMES[each.work]} | {each.swept['noise']} | {mean_text(values)} | {low:.2f} to {high:.2f} |"
    yield ""
    epoch = {noisy: means.get(Variant("epoch", noisy)) for noisy in (True, False)}
    for noisy, reached in epoch.items():
        if reached is not None:
            low, high = _interval(reached)
            verdict = (
                "fits" if least <= low and high <= most else "does not fit" if high < least or low > most else "may fit"
            )
            how = "with the noise that the paper claims" if noisy else "without noise"
            yield f"- An epoch a round {how} **{verdict}** the figure's {least:.1f} to {most:.1f} %."
    yield ""


def _interval(found: Mean) -> tuple[float, float]:
    """By Student's t."""
    width = 0.0 if found.error is None else float(stats.t.ppf(0.975, found.runs - 1)) * found.error
    return found.value - width, found.value + width
