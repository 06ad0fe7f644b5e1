"""docs/results/tuned.md from the results: what three papers' claims come to with settings chosen on validation data."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import quantiles

from discreet.experiment.comparison.comparison_results import Result
from discreet.privacy.wording import round_up
from experiments.common.means import Mean, gap_text, is_clear, mean_text, paired_difference
from experiments.fedsam.cells import METHODS as FEDSAM_METHODS
from experiments.tuned import fedsam, fu, heikkila
from experiments.tuned.families import HERE, SEEDS, Family, accuracies, identity, results, run_identity

DOCS = HERE.parents[1] / "docs" / "results"
AT_ONCE = 14  # runs that shared the GPU, at most

INTRODUCTION = """# Settings chosen on validation data

Written by `python -m experiments.tuned.reproduce --page` from `experiments/tuned/results`. Every setting here
was chosen on a fifth of each client's training examples, held out for that; the reported run was then made on all
training examples, and test examples chose nothing. No ε covers the choice. Numbers are test accuracies in percent after
the last round: means over three seeds ± their standard error. Differences are taken seed by seed; one is clear by a
two-sided t test at 5 %, for three seeds at 4.3 standard errors, not corrected for the number of tests. Then the claim
holds or fails; otherwise it can't be told.

All runs were made on one NVIDIA H200 (PyTorch 2.11, CUDA 13) with 6 to 14 at the same time, by commands like

    python -m experiments.tuned.reproduce heikkila --phase validation --device cuda --part 1/6 --out OUT
    python -m experiments.missing.reproduce fu-ten --workers 6 --memory-gb 6 --device cuda --out FILE
"""

HEIKKILA = """## Heikkilä (2025): several local steps on its network, soundly

Fashion-MNIST, ten clients, a CNN of 26,010 parameters, 20 rounds, pixels from 0 to 1: the data and the network of
[its page](distributed.md), where settings were chosen on test data of another seed. Clients hold out their own test
examples here, so each seed chooses for itself. A step is the learning rate times the clip, of one local step or of a
whole round at the broadcast model; momentum is the server's. `denoised_release` protects against everybody who sees
sums, the others against the server too. The claim is Theorem 4.6's, which does not hold: what is certified of it is in
the table.
"""

EDGE = """The best step of the claim and the best ratio of `denoised_release` were the largest of the first grid. A
larger one of each, a step of {step:g} and a ratio of {ratio:g}, was then tried on validation data of all three seeds,
and chosen by none.
"""

SHARDS = """The grid of `shards` was halved to {kept} shards during the runs, to save time: {dropped} shards take a
GPU several times as long. The first validation results were visible by then. On the first seed, the only one that has
all of them, the best of {dropped} shards had {dropped_best:.2f} % on validation data and the best of {kept} shards
{kept_best:.2f} %: the better half was cut, so the row of `shards` is too low by about that difference. LDP is
{above:.1f} points above the row.
"""

NO_HEAD = """Not run: one step a round for the body of the network with a head that each client keeps to itself. It
needs parameters that stay with a client, which no recipe has yet.
"""

FU = """## Fu et al.: FEMNIST with a learning rate chosen under noise

The network, the writers and the noise are those of [its page](iterations.md), where the learning rate of 0.3 was chosen
without noise. Here every ε, T and E has the best of {rates} for itself. The ε are the paper's, whose
noise-to-signal the runs have; certified are the much larger ones of that page.

The rates, the T and the E of this part were cut to those below before the first runs that are kept here, to save
time, after a few validation results of a larger grid had been seen. Those first results were not kept. The rate of 0.3
and ε = 20 were added later: at T = 50 the best of three rates had been 0.1, the largest, and 0.3 was known to do better
there on the test data of the other page. Validation data chose it at ε = 30 alone. All other T and E of the paper were
asked for later still; of these the E at ε = 10 were run.
"""

FEDSAM = """## DP-FedSAM: the clip and the radius chosen for every method alike

FEMNIST as on [its page](fedsam.md): ε = 8 at δ = 1e-5 for a whole client, 200 rounds, 10 local steps (about two epochs)
or 25; two of the methods on CIFAR-10 too, as there, with 4 local steps (two epochs). Each method has the clips {clips},
and 0.8 as well with two epochs; with 10, 20 or 60 local steps on CIFAR-10 (5, 10 and 30 epochs), 0.2, 0.4 and 0.8.
Those with SAM also have ASAM with ρ = 0.1 and 0.5 (the paper's) and, with two epochs, SAM with ρ = 0.01 and 0.05.
"""

FU_READING = """The paper's Table IV has E* = 24 at ε = 10 and 12 at ε = 30, with 46.63 and 67.81 %. With a rate chosen
for each E, one iteration between two uploads is best here at every ε: the accuracy at ε = 10 is the paper's, at another
E. At ε = 10, where all eight E of the paper were run, the mean falls from each E to the next. On the other page all E
of T = 240 were near chance under noise; that was the rate.

At T = 50 the largest rate is best at ε = 30, and as good as 0.1 at ε = 20 on validation data (36.0 and 36.3 %); at
T = 240 and 300 it gives at most 9 %. That accuracy falls after T = 50, as the other page shows with one rate for all T,
was the rate too: with a rate for each T, T = 300 is better at all three ε. Whether it levels off can't be told from
two T.
"""

FEDSAM_READING = """Three verdicts differ from those at the paper's clip of 0.2 for all: Fed-SMP-top_k failed there and
holds here, Fed-SMP-rand_k failed there and can't be told, and DP-FedSAM-top_k, which showed no clear difference there,
fails here: it chooses the clip of 0.2 and a smaller radius, and its mean hardly changes. The updates of Fed-SMP are
shorter and have less noise, so they take a larger clip; one clip for all doesn't fit them. A clip of 0.8 was tried
after 0.4 had been the largest and the best for both: no method chooses it. Fed-SMP-top_k has its mask from public
writers, whom the others don't use.

With five epochs DP-FedAvg is {longer:.2f} points better than with two. SAM is ahead on the validation data
that chose its settings, by {ahead:.2f} points with five epochs and by {ahead_cifar:.2f} on CIFAR-10, and not on test
data: the best of more settings is flattered more by the data that choose it. On CIFAR-10 with two epochs both methods
chose 0.4, the largest of the first clips; 0.8 was then tried, and is chosen by neither.
"""

FEDSAM_MISSING = """Not run: 5, 10 and 30 epochs on CIFAR-10, as in the paper's Fig. 5b, but for the runs that choose
DP-FedAvg's clip with five.
"""


def write(folder: Path = DOCS) -> Path:
    path = folder / "tuned.md"
    path.write_text("\n".join(_page()).rstrip() + "\n")
    return path


def _page() -> Iterator[str]:
    yield INTRODUCTION
    yield from _heikkila(Study.read("heikkila", list(heikkila.families())))
    yield from _fu(Study.read("fu", list(fu.families())))
    yield from _fedsam(Study.read("fedsam", list(fedsam.families())))


class Study:
    """The families of a study and what was run of them."""

    def __init__(self, families: list[Family], validated: Sequence[Result], final: Sequence[Result]) -> None:
        self.families = {family.key: family for family in families}
        self.validated, self.final = validated, final

    @classmethod
    def read(cls, name: str, families: list[Family]) -> "Study":
        return cls(families, results(name, "validation"), results(name, "final"))

    def reported_results(self, *key: str) -> dict[int, Result]:
        return self.families[key].reported_results(self.validated, self.final)

    def accuracy(self, *key: str) -> dict[int, float]:
        return {seed: 100 * each["metrics"]["accuracy"] for seed, each in self.reported_results(*key).items()}

    def gap(self, less: tuple[str, ...], found: tuple[str, ...]) -> Mean | None:
        one, other = self.accuracy(*less), self.accuracy(*found)
        return paired_difference(one, other) if one.keys() & other.keys() else None

    def choice_text(self, *key: str) -> str:
        """What validation chose, by seed where seeds differ."""
        family = self.families[key]
        cells = [family.choose(self.validated, seed) for seed in SEEDS]
        first = family.cells[0].swept
        varied = [name for name in first if len({cell.swept.get(name) for cell in family.cells}) > 1]
        choices = [
            "–" if cell is None else ", ".join(f"{name} {cell.swept[name]}" for name in varied) for cell in cells
        ]
        return choices[0] if len(set(choices)) == 1 else " · ".join(choices)

    def coverage(self) -> str:
        """How many runs were made, and what the others would cost, by what similar ones took."""
        wanted = sum(len(family.validation_runs()) + len(SEEDS) for family in self.families.values())
        missing = {key: self._missing(family) for key, family in self.families.items()}
        count = sum(missing.values())
        mean = sum(each["seconds"] for each in self._all_results) / len(self._all_results)
        text = (
            f"Of {wanted} runs that the script asks for {wanted - count} were made. They took {mean:.0f} seconds each "
            f"on average, while up to {AT_ONCE} shared the GPU."
        )
        if not count:
            return text
        costs = [self._gpu_seconds(self.families[key]) for key in missing]
        low, high = (sum(map(operator.mul, missing.values(), each)) / 60 for each in zip(*costs, strict=True))
        return (
            f"{text} The other {count}\nwould take {low:.0f} to {high:.0f} GPU-minutes, at the cost "
            "of a cheap and of a dear one of the runs most like them."
        )

    def was_run(self, *key: str) -> bool:
        return bool(self.reported_results(*key))

    @property
    def _all_results(self) -> list[Result]:
        return [*self.validated, *self.final]

    def _missing(self, family: Family) -> int:
        validated = {identity(each) for each in self.validated}
        lacking = [run for run in family.validation_runs() if run_identity(run) not in validated]
        return len(lacking) + len(SEEDS) - len(self.reported_results(*family.key))

    def _gpu_seconds(self, family: Family) -> tuple[float, float]:
        """Of the GPU, for a run of the family: the first and last decile of runs most like it, by their local steps."""
        swept = family.cells[0].swept
        alike = [each for each in self._all_results if each["name"] == family.cells[0].name]
        same_data = [each for each in alike if each["swept"].get("data") == swept.get("data")]
        costs = [
            each["seconds"] / each.get("at_once", AT_ONCE) / _work(each["swept"])
            for each in same_data or alike or self._all_results
        ]
        low, *_, high = quantiles(costs, n=10)
        return _work(swept) * low, _work(swept) * high


def _work(swept: Mapping[str, str]) -> float:
    """What a run's cost is in proportion to: its local steps a round, or its iterations."""
    return float(swept.get("steps", swept.get("T", 1)))


def _verdict(gap: Mean | None) -> str:
    if gap is None:
        return "not run"
    if not is_clear(gap):
        return f"{gap_text(gap)}: can't be told"
    return f"{gap_text(gap)}: **{'holds' if gap.value > 0 else 'fails'}**"


def _heikkila(study: Study) -> Iterator[str]:
    yield HEIKKILA
    yield "| | test accuracy | ε certified, against | chosen, by seed |"
    yield "|---|---:|---|---|"
    for method, label in heikkila.METHODS.items():
        runs = study.reported_results(method)
        card = f"{round_up(max(r['epsilon'] for r in runs.values()), 3)}, {_view(runs)}" if runs else "–"
        yield f"| {label} | {mean_text(list(study.accuracy(method).values()))} | {card} | {study.choice_text(method)} |"
    yield ""
    for claim, less, found in (
        ("a sound scheme beats LDP: `denoised_release` less LDP", "ldp", "denoised_release"),
        ("`denoised_release` less one step a round", "one_step", "denoised_release"),
        ("gradients at the broadcast model less one step a round", "one_step", "broadcast"),
        (
            "a sound scheme comes up to the unsound claim: `denoised_release` less the claim",
            "claim",
            "denoised_release",
        ),
        ("more local steps help without the theorem: LDP less one step a round", "one_step", "ldp"),
        ("`shards` beats LDP: `shards` less LDP", "ldp", "shards"),
        ("`shards` beats one step a round: `shards` less one step", "one_step", "shards"),
    ):
        yield f"- {claim}: {_verdict(study.gap((less,), (found,)))}"
    yield ""
    yield EDGE.format(step=heikkila.LONGER_STEP, ratio=max(heikkila.GRIDS["denoised_release"]["ratio"]))
    yield _shards(study)
    yield NO_HEAD
    yield study.coverage()
    yield ""


def _shards(study: Study) -> str:
    """Compare the shards that were tried with those that were dropped from the grid, on the first seed."""
    runs = [each for each in study.validated if each["name"] == "shards" and each["seed"] == SEEDS[0]]
    counts = [f"{value:g}" for value in heikkila.GRIDS["shards"]["shards"]]
    kept = [each for each in runs if each["swept"]["shards"] in counts]
    dropped = [each for each in runs if each["swept"]["shards"] not in counts]
    gap = study.gap(("shards",), ("ldp",))
    kept_best, dropped_best = (max(100 * each["metrics"]["accuracy"] for each in group) for group in (kept, dropped))
    return SHARDS.format(
        kept=kept[0]["swept"]["shards"],
        dropped=dropped[0]["swept"]["shards"],
        above=0.0 if gap is None else gap.value,
        kept_best=kept_best,
        dropped_best=dropped_best,
    )


def _view(runs: dict[int, Result]) -> str:
    return str(next(iter(runs.values()))["against"])


def _fu(study: Study) -> Iterator[str]:
    yield FU.format(rates=", ".join(f"{rate:g}" for rate in fu.RATES))
    yield "| the paper's ε | T | E | test accuracy | learning rate |"
    yield "|---:|---:|---:|---:|---|"
    for key in sorted(study.families, key=lambda key: tuple(map(float, key))):
        epsilon, total, local = key
        if not study.was_run(*key):
            continue
        accuracy = mean_text(list(study.accuracy(*key).values()))
        yield f"| {epsilon} | {total} | {local} | {accuracy} | {study.choice_text(*key).removeprefix('rate ')} |"
    yield ""
    total = str(fu.TOTAL)
    for epsilon in (f"{each:g}" for each in fu.EPSILONS):
        for local in map(str, fu.LOCALS[1:]):
            gap = study.gap((epsilon, total, "1"), (epsilon, total, local))
            if gap is None:
                continue
            yield f"- several iterations between uploads help at ε = {epsilon}: E = {local} less E = 1: {_verdict(gap)}"
    for epsilon in (f"{each:g}" for each in fu.EPSILONS):
        first, last = (str(each) for each in fu.COMPARED_TOTALS)
        gap = study.gap((epsilon, first, str(fu.LOCAL)), (epsilon, last, str(fu.LOCAL)))
        claim = f"longer training is better at ε = {epsilon}: T = {last} less T = {first}, E = {fu.LOCAL}"
        yield f"- {claim}: {_verdict(gap)}"
    yield ""
    yield FU_READING
    yield study.coverage()
    yield "Not run: eight more T of the paper at every ε, and five more E at ε = 20 and 30."
    yield ""


def _fedsam(study: Study) -> Iterator[str]:
    yield FEDSAM.format(clips=", ".join(f"{clip:g}" for clip in fedsam.CLIPS))
    yield "| algorithm | data, local steps | test accuracy | less DP-FedAvg | chosen |"
    yield "|---|---|---:|---:|---|"
    for data, method, steps in study.families:
        if not study.was_run(data, method, steps):
            continue
        gap = None if method == "dp_fedavg" else study.gap((data, "dp_fedavg", steps), (data, method, steps))
        accuracy = mean_text(list(study.accuracy(data, method, steps).values()))
        less = "–" if gap is None else gap_text(gap)
        named = f"{FEDSAM_METHODS[method]} | {data}, {steps}"
        yield f"| {named} | {accuracy} | {less} | {study.choice_text(data, method, steps)} |"
    yield ""
    for claim, less, found in (
        ("SAM helps: DP-FedSAM ≥ DP-FedAvg", "dp_fedavg", "dp_fedsam"),
        ("DP-FedAvg-blur ≥ DP-FedAvg", "dp_fedavg", "dp_fedavg_blur"),
        ("sparsified ≥ dense: DP-FedAvg-blurs ≥ DP-FedAvg-blur", "dp_fedavg_blur", "dp_fedavg_blurs"),
        ("sparsified ≥ dense: Fed-SMP-rand_k ≥ DP-FedAvg", "dp_fedavg", "fed_smp_rand"),
        ("sparsified ≥ dense: Fed-SMP-top_k ≥ DP-FedAvg", "dp_fedavg", "fed_smp_top"),
        ("DP-FedSAM-top_k ≥ DP-FedAvg", "dp_fedavg", "dp_fedsam_top"),
    ):
        yield f"- {claim}: {_verdict(study.gap(('femnist', less, '10'), ('femnist', found, '10')))}"
    for where, data, steps in (("with five epochs", "femnist", "25"), ("on CIFAR-10", "cifar", "4")):
        gap = study.gap((data, "dp_fedavg", steps), (data, "dp_fedsam", steps))
        yield f"- SAM helps {where}: DP-FedSAM ≥ DP-FedAvg: {_verdict(gap)}"
    yield ""
    yield _fedsam_reading(study)
    yield study.coverage()
    yield FEDSAM_MISSING
    yield ""


def _fedsam_reading(study: Study) -> str:
    """What the runs with five epochs and on CIFAR-10 tell."""
    longer = study.gap(("femnist", "dp_fedavg", "10"), ("femnist", "dp_fedavg", "25"))
    ahead, ahead_cifar = (
        _best_validation(study, (data, "dp_fedsam", steps)) - _best_validation(study, (data, "dp_fedavg", steps))
        for data, steps in (("femnist", "25"), ("cifar", "4"))
    )
    return FEDSAM_READING.format(longer=0.0 if longer is None else longer.value, ahead=ahead, ahead_cifar=ahead_cifar)


def _best_validation(study: Study, key: tuple[str, ...]) -> float:
    """The best validation accuracy of a family on the first seed, in percent."""
    cells = study.families[key].cells
    return max(accuracies(study.validated, cell).get(SEEDS[0], 0.0) for cell in cells)
