"""docs/results/fedsam.md from the results: Shi et al.'s algorithms at one certified ε, and whether its claims hold."""

from collections.abc import Callable, Iterator
from pathlib import Path

from discreet.experiment.comparison.comparison_results import Result
from discreet.privacy.wording import round_up
from experiments.common import pictures
from experiments.common.means import Mean, gap_text, is_clear, mean_text, paired_difference
from experiments.fedsam import coverage, paper_epsilon
from experiments.fedsam.cells import HERE, METHODS, RADII, SETTINGS, select_results

DOCS = HERE.parents[1] / "docs" / "results"
NAMES = {"femnist": "FEMNIST", "mnist": "MNIST", "cifar": "CIFAR-10"}
CLAIMS = [  # less, found, what the paper says of them
    ("dp_fedavg", "dp_fedsam", "SAM helps: DP-FedSAM ≥ DP-FedAvg"),
    ("dp_fedsam", "dp_fedsam_top", "sparsified ≥ dense: DP-FedSAM-top_k ≥ DP-FedSAM"),
    ("dp_fedavg", "dp_fedsam_top", "DP-FedSAM-top_k ≥ DP-FedAvg"),
    ("dp_fedavg", "dp_fedavg_blur", "DP-FedAvg-blur ≥ DP-FedAvg"),
    ("dp_fedavg_blur", "dp_fedavg_blurs", "sparsified ≥ dense: DP-FedAvg-blurs ≥ DP-FedAvg-blur"),
    ("dp_fedavg", "fed_smp_rand", "sparsified ≥ dense: Fed-SMP-rand_k ≥ DP-FedAvg"),
    ("dp_fedavg", "fed_smp_top", "sparsified ≥ dense: Fed-SMP-top_k ≥ DP-FedAvg"),
]

INTRODUCTION = """# DP-FedSAM (Shi et al. 2023): its algorithms at one certified ε

Written by `python -m experiments.fedsam.reproduce --page` from `experiments/fedsam/results.jsonl`. Every run keeps the
same promise, ε = 8 at δ = 1e-5 for a whole client against everybody who sees released models, and takes the same noise
for it: clients join by secret coins of 0.1, each update is clipped once as a whole, and the sum is divided by the
expected cohort. Accuracies are those of the last round on test data, in percent: means over three seeds ± their
standard error; n says how many seeds there are where there are fewer.

Nothing was tuned here for any algorithm. All have the paper's learning rate 0.1, decay 0.998, momentum 0.5, weight
decay 5e-4, clip 0.2 and k/d = 0.4; SAM has its ρ = 0.5 in the adaptive form that its code runs, and BLUR a strength of
0.1, since the paper gives none. One clip for all does not fit sparse updates: [with a clip and a radius chosen for each
method](tuned.md) on validation data, three verdicts change. The networks and the local work are
smaller than the paper's:
"""

SMALLER = {
    "femnist": """\
- **FEMNIST** instead of EMNIST: the 300 whole writers are the clients, of whom 30 are expected in each of 200 rounds;
  10 local steps in batches of 32, about two epochs instead of 30; 27,726 parameters instead of 903,614. The other 240
  writers are public: from them comes the mask of Fed-SMP-top_k.""",
    "mnist": """\
- **MNIST**, which the paper doesn't have: 500 of its writers, with the same network for ten classes and the same local
  work; 35 others are public.""",
    "cifar": """\
- **CIFAR-10** dealt out to 500 clients of 96 pictures by Dirichlet(0.6), 50 of them expected in each of 200 rounds
  instead of 300; 4 local steps in batches of 50, two epochs; a CNN of 19,626 parameters instead of a ResNet-18 of
  11,173,962, without augmentation. The last 2,000 training pictures are public.""",
}

TESTED = """
The paper tests clients on their own test data and reports the best round; here it is one test set and the last round.
"""

DIAGNOSED = """‖Δ‖ is the mean norm of updates before the clip, of what is left of them where they are sparse;
α_i = min(1, C/‖Δ_i‖) is what the clip leaves of one, ᾱ its mean over the cohort and α̃ the mean of |α_i − ᾱ|. These, and
the share of updates that were clipped, are on average over all rounds. S/N is the norm of the sum of clipped updates
over that of the noise on the coordinates that are sent. The gap is accuracy on training examples less that on test
data. No guarantee covers these numbers.
"""

READING = """Differences are taken seed by seed, ± their standard error. One is clear by a two-sided t test at 5 %: for
three seeds, at 4.3 standard errors. Then the claim holds or fails; otherwise these runs show no clear difference.
"""

CHANCE = """The table has {tests} such tests, not corrected for their number: if no two algorithms differed, about 5 %
of them would be expected to come out clear.
"""


def write(results: list[Result], folder: Path = DOCS) -> Path:
    """The page and its picture; the path of the page."""
    path = folder / "fedsam.md"
    path.write_text("\n".join(_page(results, folder)) + "\n")
    return path


def _page(results: list[Result], folder: Path) -> Iterator[str]:
    federations = [data for data in SETTINGS if any(each["swept"]["data"] == data for each in results)]
    yield INTRODUCTION
    yield from (SMALLER[data] for data in federations)
    yield TESTED
    yield from _claims(results, federations)
    for data in federations:
        yield from _federation_section(results, data)
    yield _picture(results, folder, federations)
    yield ""
    yield from _radii(results)
    yield from coverage.section(results)
    yield from paper_epsilon.table()


def _federation_section(results: list[Result], data: str) -> Iterator[str]:
    yield f"## {NAMES[data]}"
    yield ""
    found = {method: select_results(results, data, method) for method in METHODS}
    every = [each for runs in found.values() for each in runs]
    if every:
        noise = ", ".join(sorted({f"{each['noise_multiplier']:.4f}" for each in every}))
        certified = max(each["epsilon"] for each in every)
        where = ", ".join(sorted({each["device"] for each in every}))
        yield f"{every[0]['clients']} clients, {every[0]['rounds']} rounds, noise multiplier {noise}:"
        yield f"ε = {round_up(certified)} at δ = {every[0]['delta']:g} is certified. Trained on: {where}."
        yield ""
    yield "| algorithm | test accuracy | less DP-FedAvg | ‖Δ‖ | ᾱ | α̃ | clipped, % | S/N | gap |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for method, runs in found.items():
        yield f"| {METHODS[method]} | {_row(runs, found['dp_fedavg'])} |"
    yield ""
    if data == "femnist":
        yield DIAGNOSED


def _row(runs: list[Result], baseline: list[Result]) -> str:
    cells = [mean_text(list(_accuracy(runs).values())), _gap_cell(baseline, runs)]
    for name, scale, digits in (("norm", 1, 3), ("kept", 1, 3), ("deviation", 1, 3), ("clipped", 100, 1)):
        cells.append(_plain([scale * value for value in _diagnostic_by_seed(runs, name).values()], digits))
    cells.append(_plain(list(_diagnostic_by_seed(runs, "signal_to_noise").values()), 3))
    return " | ".join([*cells, _plain(list(_gap(runs).values()), 2)])


def _claims(results: list[Result], federations: list[str]) -> Iterator[str]:
    told: list[tuple[str, Callable[[list[Result]], dict[int, float]], int]] = [
        ("updates are smaller with SAM: ‖Δ‖", lambda runs: _diagnostic_by_seed(runs, "norm"), 3),
        ("clips are more alike with SAM: α̃", lambda runs: _diagnostic_by_seed(runs, "deviation"), 4),
        ("the gap is smaller with SAM", _gap, 2),
    ]
    yield "## Do the paper's claims hold here?"
    yield ""
    yield READING
    yield CHANCE.format(tests=(len(CLAIMS) + len(told)) * len(federations))
    yield "| claim | " + " | ".join(NAMES[data] for data in federations) + " |"
    yield "|---|" + "---|" * len(federations)
    for less, found, claim in CLAIMS:
        yield (
            f"| {claim} | "
            + " | ".join(_verdict(_compare_methods(results, data, less, found)) for data in federations)
            + " |"
        )
    for claim, of, digits in told:
        cells = [
            _verdict(_compare_methods(results, data, "dp_fedavg", "dp_fedsam", of), digits, -1) for data in federations
        ]
        yield f"| {claim} | " + " | ".join(cells) + " |"
    yield ""


def _radii(results: list[Result]) -> Iterator[str]:
    """SAM and ASAM with other radii: whether the paper's is to blame."""
    baseline = select_results(results, "femnist", "dp_fedavg")
    yield "## SAM with other radii, on FEMNIST"
    yield ""
    yield "DP-FedSAM again; its best radius is picked by the test data that it is then judged by, which flatters it."
    yield ""
    yield "| SAM | ρ | test accuracy | less DP-FedAvg | ‖Δ‖ | α̃ | gap |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    rows = [("true", "0.5", select_results(results, "femnist", "dp_fedsam"))]
    rows += [(each["adaptive"], each["rho"], select_results(results, "femnist", "dp_fedsam", **each)) for each in RADII]
    for adaptive, rho, runs in sorted(rows, key=lambda row: (row[0], float(row[1]))):
        cells = [
            "ASAM" if adaptive == "true" else "SAM",
            rho,
            mean_text(list(_accuracy(runs).values())),
            _gap_cell(baseline, runs),
            _plain(list(_diagnostic_by_seed(runs, "norm").values()), 3),
            _plain(list(_diagnostic_by_seed(runs, "deviation").values()), 4),
            _plain(list(_gap(runs).values()), 2),
        ]
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _picture(results: list[Result], folder: Path, federations: list[str]) -> str:
    figure, panels = pictures.figure(len(federations))
    for axes, data in zip(panels, federations, strict=True):
        for method, name in METHODS.items():
            by_round: dict[int, list[float]] = {}
            for run in select_results(results, data, method):
                for point in run["history"]:
                    by_round.setdefault(point["round"], []).append(100 * point["accuracy"])
            if by_round:
                pictures.line(axes, by_round, name, markersize=2, linewidth=1)
        title = f"{NAMES[data]}, ε = 8"
        if axes.lines or axes.containers:
            pictures.label_axes(axes, title, "round", "test accuracy, %")
    return pictures.save_picture(figure, folder / "fedsam.svg", "Accuracy against rounds")


def _compare_methods(
    results: list[Result],
    data: str,
    less: str,
    found: str,
    of: Callable[[list[Result]], dict[int, float]] | None = None,
) -> Mean | None:
    one, other = ((of or _accuracy)(select_results(results, data, method)) for method in (less, found))
    return paired_difference(one, other) if one.keys() & other.keys() else None


def _verdict(gap: Mean | None, digits: int = 2, better: int = 1) -> str:
    if gap is None:
        return "not run"
    if not is_clear(gap):
        return f"{gap_text(gap, digits)}: no clear difference"
    return f"{gap_text(gap, digits)}: **{'holds' if better * gap.value > 0 else 'fails'}**"


def _gap_cell(baseline: list[Result], runs: list[Result]) -> str:
    one, other = _accuracy(baseline), _accuracy(runs)
    if runs == baseline or not one.keys() & other.keys():
        return "–"
    return gap_text(paired_difference(one, other))


def _plain(values: list[float], digits: int) -> str:
    return mean_text(values, digits).replace("**", "")


def _accuracy(runs: list[Result]) -> dict[int, float]:
    return {each["seed"]: 100 * each["metrics"]["accuracy"] for each in runs}


def _diagnostic_by_seed(runs: list[Result], name: str) -> dict[int, float]:
    return {each["seed"]: each["diagnostics"][name] for each in runs if name in each["diagnostics"]}


def _gap(runs: list[Result]) -> dict[int, float]:
    return {
        each["seed"]: 100 * (each["training"]["accuracy"] - each["metrics"]["accuracy"])
        for each in runs
        if each["training"]
    }
