"""docs/results/pfl.md from the results: the paper's number beside ours, and whether its two claims hold here."""

import math
import statistics
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "results"
NAMES = {"cnn-relu": "CNN+ReLU", "cnn-ts": "CNN+TS", "sn-linear": "SN+Linear", "sn-cnn": "SN+CNN"}
SETS = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "cifar": "CIFAR-10"}
GOALS = [  # the lines: data, model, epsilon, settings, the least that will do, why
    ("mnist", "sn-linear", 2.93, "paper", 97.5, "paper 97.52"),
    ("mnist", "cnn-ts", 2.93, "paper", 93.5, "paper 93.56"),
    ("mnist", "sn-linear", 2.93, "better", 97.9, "better settings"),
    ("fashion", "sn-linear", 2.7, "paper", 85.01, "paper 86.01, within 1"),
    ("fashion", "sn-linear", 1.2, "paper", 83.96, "paper 84.96, within 1"),
    ("fashion", "sn-cnn", 2.7, "paper", 80.26, "paper 81.26, within 1"),
    ("fashion", "sn-cnn", 1.2, "paper", 78.03, "paper 79.03, within 1"),
    ("cifar", "sn-linear", 7.53, "paper", 53.58, "paper 54.58, within 1"),
    ("cifar", "sn-linear", 3.0, "paper", 50.08, "paper 51.08, within 1"),
    ("cifar", "sn-cnn", 7.53, "paper", 51.40, "paper 52.40, within 1"),
    ("cifar", "sn-cnn", 3.0, "paper", 44.82, "paper 45.82, within 1"),
]

ENOUGH = {"epochs": 4, "clients": 2}

INTRODUCTION = """# PFL (paper 000): its tables, measured again

Written by `experiments/pfl/reproduce.py --write` from `experiments/pfl/results.jsonl`. Each number is the test
accuracy in percent after the last round: the paper's, then **ours** as a mean over seeds ± its standard error. A dash
is a cell that was not run. The paper averages ten runs and gives neither its batch size nor its delta: ours are 256
and 1e-5; the rest is its own (clip 1, learning rate 0.3, momentum 0.5 that starts anew each round). It doesn't say how
features are normalised before SN+Linear: ours are by groups of channels, each example by itself.
"""

OVERLAP = """Every noise is that of ε = {epsilon:g} for one client alone. More than ten clients with a tenth each
overlap: what is *certified* then counts every client that holds an example. Beside them, disjoint clients, who have
less data each as they become more, and keep the promise.
"""

THEOREM_2 = """The proof minimises an upper bound that is linear in E by construction, and for one round, not for
E·R = T. So this is a claim to look at:
"""

THEOREM_3 = """The proof takes the clients' models as independent and unbiased. Two readings, both measured: clients who
each draw a tenth of their own, so that they overlap and the certified ε grows with them; and disjoint clients who
share one training set, so that each has less: the same promise takes more noise, and an epoch has fewer steps.
"""

Result = dict[str, Any]


def write(results: list[Result]) -> Path:
    """The page and its two pictures; the path of the page."""
    path = DOCS / "pfl.md"
    path.write_text("\n".join(_page(results)) + "\n")
    return path


def chosen(results: list[Result], **wanted: Any) -> list[Result]:
    return [each for each in results if all(each[name] == value for name, value in wanted.items())]


def mean(found: list[Result]) -> tuple[float, float | None]:
    """The mean accuracy and its standard error, where there is more than one run."""
    values = [each["accuracy"] for each in found]
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return statistics.fmean(values), error


def said(found: list[Result]) -> str:
    if not found:
        return "–"
    value, error = mean(found)
    return f"**{value:.2f}**" + ("" if error is None else f" ± {error:.2f}")


def _page(results: list[Result]) -> Iterator[str]:
    ten = chosen(results, clients=10, overlapping=False)
    yield INTRODUCTION
    yield from _goals(results)
    for name in ("table2", "table3", "table4"):
        yield from _splits(tomllib.loads((HERE / f"{name}.toml").read_text()), ten)
    for name in ("table5-mnist", "table5-fashion", "table5-cifar"):
        yield from _clients(tomllib.loads((HERE / f"{name}.toml").read_text()), results)
    yield from _theorem_2(ten)
    yield from _theorem_3(results)


def _goals(results: list[Result]) -> Iterator[str]:
    yield "## What had to hold: (E, R) = (1, 20), 10 disjoint clients"
    yield ""
    yield "| data | model | ε | settings | ours | at least | |"
    yield "|---|---|---:|---|---:|---|---|"
    for data, model, epsilon, settings, least, why in GOALS:
        cell = {"data": data, "model": model, "epsilon": epsilon, "settings": settings}
        found = chosen(results, **cell, epochs=1, clients=10, overlapping=False)
        verdict = "not run" if not found else "met" if mean(found)[0] >= least else "missed"
        named = f"{SETS[data]} | {NAMES[model]} | {epsilon:g} | {settings}"
        yield f"| {named} | {said(found)} | {least:.2f} ({why}) | {verdict} |"
    yield ""
    below = list(_below(results))
    if below:
        yield "Cells of (1, 20) that lie more than a point below the paper's:"
        yield ""
        yield from below
        yield ""
        yield "Where another ε gives nearly the same, noise is not what holds such a cell back; the batch size, which"
        yield "the paper doesn't give, decides how many steps an epoch has."
        yield ""


def _below(results: list[Result]) -> Iterator[str]:
    for name in ("table2", "table3", "table4"):
        table = tomllib.loads((HERE / f"{name}.toml").read_text())
        for column in table["column"]:
            for model, theirs in zip(table["models"], column["paper"][0], strict=True):
                cell = {"data": table["data"], "model": model, "epsilon": column.get("epsilon"), "settings": "paper"}
                found = chosen(results, **cell, epochs=1, clients=10, overlapping=False)
                if found and mean(found)[0] < theirs - 1:
                    promise = f"ε = {column['epsilon']:g}" if "epsilon" in column else "no privacy"
                    yield f"- {SETS[table['data']]}, {NAMES[model]}, {promise}: {said(found)}, the paper {theirs:.2f}"


def _splits(table: dict[str, Any], ten: list[Result]) -> Iterator[str]:
    """Tables 2 to 4: how the epochs are split into rounds."""
    yield f"## {table['title']}"
    for column in table["column"]:
        epsilon = column.get("epsilon")
        yield ""
        yield "Without privacy (FedAvg):" if epsilon is None else f"ε = {epsilon:g}:"
        yield ""
        yield "| (E, R) | " + " | ".join(NAMES[model] for model in table["models"]) + " |"
        yield "|---|" + "---:|" * len(table["models"])
        for (epochs, rounds), paper in zip(table["splits"], column["paper"], strict=True):
            cells = [
                f"{theirs:.2f} · "
                + said(chosen(ten, data=table["data"], model=model, epsilon=epsilon, epochs=epochs, settings="paper"))
                for model, theirs in zip(table["models"], paper, strict=True)
            ]
            yield f"| ({epochs}, {rounds}) | " + " | ".join(cells) + " |"
    yield ""


def _clients(table: dict[str, Any], results: list[Result]) -> Iterator[str]:
    """Table 5: how many clients, and what is certified when they overlap."""
    (column,) = table["column"]
    found = chosen(results, data=table["data"], epsilon=column["epsilon"], epochs=1, settings="paper")
    if not chosen(found, clients=25):
        return
    yield f"## {table['title']}"
    yield ""
    yield OVERLAP.format(epsilon=column["epsilon"])
    yield "| clients | certified ε | " + " | ".join(NAMES[model] for model in table["models"]) + " |"
    yield "|---|---:|" + "---:|" * len(table["models"])
    for clients, paper in zip(table["clients"], column["paper"], strict=True):
        for overlapping in (True, False) if clients > 10 else (False,):
            cells = chosen(found, clients=clients, overlapping=overlapping)
            if not cells:
                continue
            certified = max(each["certified"] for each in cells)
            most = max(each["multiplicity"] for each in cells)
            way = f"{clients} overlapping (an example in up to {most})" if overlapping else f"{clients} disjoint"
            theirs = [f"{each:.2f} · " if overlapping or clients <= 10 else "" for each in paper]
            ours = [said(chosen(cells, model=model)) for model in table["models"]]
            row = " | ".join(f"{paper}{own}" for paper, own in zip(theirs, ours, strict=True))
            yield f"| {way} | {certified:.2f} | {row} |"
    yield ""


def _theorem_2(ten: list[Result]) -> Iterator[str]:
    yield "## Theorem 2: is one local epoch a round always best?"
    yield ""
    yield THEOREM_2
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    for data, model, epsilon in _series(ten, "epochs"):
        found = chosen(ten, data=data, model=model, epsilon=epsilon, settings="paper")
        by_epochs = {epochs: chosen(found, epochs=epochs) for epochs in sorted({each["epochs"] for each in found})}
        values = {epochs: mean(cells) for epochs, cells in by_epochs.items()}
        label = f"{SETS[data]}, {NAMES[model]}, ε = {epsilon:g}"
        heights, errors = zip(*((value, error or 0) for value, error in values.values()), strict=True)
        axes.errorbar(list(values), heights, errors, marker="o", capsize=3, label=label)
        best = max(values, key=lambda epochs: values[epochs][0])
        rest = {epochs: value for epochs, value in values.items() if epochs != 1}
        rival = max(rest, key=lambda epochs: rest[epochs][0])
        gap = values[1][0] - rest[rival][0]
        noise = math.hypot(values[1][1] or 0, rest[rival][1] or 0)
        verdict = "holds" if gap > 2 * noise else "fails" if gap < -2 * noise else "can't be told from these runs"
        yield (
            f"- {label}: best at E = {best}; E = 1 less the best other (E = {rival}) is {gap:+.2f} ± {noise:.2f} "
            f"points: the claim **{verdict}**."
        )
    yield ""
    yield "The paper says that (1, T) is always best; its own best cells for SN+Linear are (4, 5), (2, 10) and (10, 2)."
    yield ""
    yield _picture(figure, axes, "pfl-epochs", "local epochs a round, E (E·R = 20)", "Accuracy against local epochs")
    yield ""


def _theorem_3(results: list[Result]) -> Iterator[str]:
    yield "## Theorem 3: do more clients help?"
    yield ""
    yield THEOREM_3
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    paper = [each for each in chosen(results, epochs=1, settings="paper") if each["epsilon"] is not None]
    for data, model, epsilon in _series(paper, "clients"):
        for overlapping in (True, False):
            own = chosen(paper, data=data, model=model, epsilon=epsilon)
            found = [each for each in own if each["clients"] == 10 or each["overlapping"] == overlapping]
            counts = sorted({each["clients"] for each in found} - {1})
            if len(counts) < 2:
                continue
            values = {clients: mean(chosen(found, clients=clients)) for clients in counts}
            way = "overlapping" if overlapping else "disjoint"
            label = f"{SETS[data]}, {NAMES[model]}, {way}"
            heights, errors = zip(*((value, error or 0) for value, error in values.values()), strict=True)
            axes.errorbar(counts, heights, errors, marker="o", capsize=3, label=label)
            gain = heights[-1] - heights[0]
            noise = math.hypot(errors[0], errors[-1])
            verdict = "helps" if gain > 2 * noise else "hurts" if gain < -2 * noise else "makes no clear difference"
            certified = max(each["certified"] for each in chosen(found, clients=counts[-1]))
            yield (
                f"- {label}: from {counts[0]} to {counts[-1]} clients {gain:+.2f} ± {noise:.2f} points, which "
                f"**{verdict}** (certified ε {certified:.2f})."
            )
    yield ""
    yield _picture(figure, axes, "pfl-clients", "clients, k", "Accuracy against clients")


def _series(results: list[Result], varied: str) -> list[tuple[str, str, float]]:
    """Data, model and ε for which enough values of what is varied were run to see a curve."""
    kinds = dict.fromkeys((each["data"], each["model"], each["epsilon"]) for each in results if each["epsilon"])
    found = {kind: {e[varied] for e in results if (e["data"], e["model"], e["epsilon"]) == kind} for kind in kinds}
    return [kind for kind, values in found.items() if len(values) >= ENOUGH[varied]]


def _picture(figure: Any, axes: Any, name: str, across: str, title: str) -> str:
    places = sorted({int(x) for line in axes.get_lines() for x in line.get_xdata()})
    axes.set_xscale("log")
    axes.set_xticks(places, list(map(str, places)))
    axes.minorticks_off()
    axes.set_xlabel(across)
    axes.set_ylabel("test accuracy, %")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(DOCS / f"{name}.svg", metadata={"Date": None})
    pyplot.close(figure)
    return f"![{title}, with standard errors]({name}.svg)"
