"""How good the built-in experiment is: what `discreet run` trains without a file, over many fresh runs.

Each run splits the digits anew, so a single accuracy says little: with 359 test examples its standard deviation is
about 1.7 points. A series of seeds makes two settings comparable, run by run; only fresh runs count for the goal.
"""

import argparse
import json
import math
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from results import FOLDER, machine, provenance, verdict, versions

from discreet import api
from discreet.experiment.configuration import experiment_file
from discreet.experiment.configuration.experiment_file import Experiment
from discreet.experiment.configuration.starter_files import BUILT_IN

GOAL_MEAN, GOAL_LEAST = 0.88, 0.83


@dataclass(frozen=True)
class Series:
    """So many runs of one experiment; `first_seed` is None for runs whose noise nobody can repeat."""

    machine: str
    versions: dict[str, str]
    overrides: list[str]
    first_seed: int | None
    epsilon: float
    delta: float
    accuracies: list[float]
    seconds: list[float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.accuracies)

    @property
    def standard_error(self) -> float:
        runs = len(self.accuracies)
        return statistics.stdev(self.accuracies) / math.sqrt(runs) if runs > 1 else math.nan

    @property
    def least(self) -> float:
        return min(self.accuracies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=20, help="how many (20)")
    parser.add_argument("--seed", type=int, metavar="S", help="run the seeds S, S+1, …; default: fresh runs")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="as in discreet run")
    parser.add_argument("--json", action="store_true", help="print the measurements as one object")
    parser.add_argument("--write", action="store_true", help="also write docs/results/digits.md anew")
    options = parser.parse_args()
    if options.write and (options.set or options.seed is not None):
        parser.error("--write is about the built-in experiment in fresh runs: leave out --set and --seed")
    series = measure(options.runs, options.seed, options.set)
    if options.write:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "digits.md").write_text(page(series), encoding="utf-8")
    if options.json:
        summary = {"mean": series.mean, "standard_error": series.standard_error, "least": series.least}
        print(json.dumps(asdict(series) | summary))
    else:
        print(page(series) if not options.set else "\n".join(_table(series)))


def measure(runs: int, first_seed: int | None, overrides: list[str]) -> Series:
    experiment = experiment_file.load_experiment(None, tuple(overrides)).experiment
    assert experiment.privacy is not None
    accuracies, seconds = [], []
    for number in range(runs):
        began = time.perf_counter()
        accuracies.append(_train_once(experiment, None if first_seed is None else first_seed + number))
        seconds.append(time.perf_counter() - began)
        print(f"run {number + 1}/{runs}  accuracy {accuracies[-1]:.4f}  {seconds[-1]:.1f} s", file=sys.stderr)
    return Series(
        machine=machine(),
        versions=versions("discreet", "torch"),
        overrides=overrides,
        first_seed=first_seed,
        epsilon=experiment.privacy.largest_epsilon,
        delta=experiment.privacy.delta,
        accuracies=accuracies,
        seconds=seconds,
    )


def _train_once(experiment: Experiment, seed: int | None) -> float:
    """One run, from the data to its page, in a folder that is gone afterwards."""
    with TemporaryDirectory() as folder:
        trained = api.train(
            experiment.model,
            experiment.task,
            rounds=experiment.rounds,
            algorithm=experiment.algorithm,
            privacy=experiment.privacy,
            seed=seed,
            out=Path(folder) / "run",
            key_dir=Path(folder) / "keys",
            progress=False,
            engine=experiment.engine,
            evaluate_every=experiment.evaluate_every,
            checkpoint_every=experiment.checkpoint_every,
            dtype=experiment.dtype,
            device=experiment.device,
        )
        assert trained.stopped is None
        return float(trained.metrics["accuracy"])


# The page.


def page(series: Series) -> str:
    return "\n".join(
        [
            "# How good the built-in experiment is",
            "",
            "Written by `benchmarks/digits.py --write`: what `discreet run` trains without a file, in "
            f"{len(series.accuracies)} {'fresh runs' if series.first_seed is None else 'seeded runs'}.",
            "Each splits the digits anew, and is tried on the fifth that nobody trained on. These accuracies were "
            "computed without noise; the digits are public data.",
            "",
            provenance(series.machine, series.versions),
            "",
            f"## Accuracy at ε = {series.epsilon:g}, δ = {series.delta:g}",
            "",
            *_table(series),
            "",
            "All of them, in order: " + ", ".join(f"{100 * each:.1f}" for each in sorted(series.accuracies)) + ".",
            "",
            "## The experiment",
            "",
            "```toml",
            BUILT_IN.rstrip(),
            "```",
            "",
        ]
    )


def _table(series: Series) -> list[str]:
    mean = f"{100 * series.mean:.2f} ± {100 * series.standard_error:.2f} %"
    return [
        "| | measured | goal | |",
        "|---|---:|---:|---|",
        f"| mean and its standard error | {mean} | ≥ {100 * GOAL_MEAN:g} % | {verdict(series.mean >= GOAL_MEAN)} |",
        f"| least | {100 * series.least:.2f} % | ≥ {100 * GOAL_LEAST:g} % | {verdict(series.least >= GOAL_LEAST)} |",
        f"| seconds a run, median | {statistics.median(series.seconds):.1f} | | |",
    ]


if __name__ == "__main__":
    main()
