"""Chooses settings on validation data and then runs what was chosen. Run again, it continues where it stopped.

python -m experiments.tuned.reproduce heikkila --device cuda --data-dir DATA
python -m experiments.tuned.reproduce fu --phase validation --part 1/10 --out OUT    # and nine more beside it
python -m experiments.tuned.reproduce --page    # docs/results/tuned.md, from all results so far
"""

import argparse
import math
import time
from pathlib import Path

import torch

from discreet.experiment.comparison import comparison
from discreet.experiment.comparison.cells import CellRun
from discreet.experiment.comparison.comparison_results import Result, ResultsFile
from discreet.experiment.run_directory.run_files import RoundRecord
from experiments.common.parts import part
from experiments.tuned import fedsam, fu, heikkila
from experiments.tuned.families import HERE, Family, identity, results, run_identity
from experiments.tuned.validation import ValidationData

STUDIES = {"heikkila": heikkila.families, "fu": fu.families, "fedsam": fedsam.families}
PHASES = ("validation", "final")


class _Printer:
    """Prints a line for each run that is done."""

    def round(self, run: CellRun, line: RoundRecord) -> None:
        """Rounds are not printed."""

    def finish_run(self, run: CellRun, result: Result) -> None:
        print(f"{run.label}: {100 * result['metrics']['accuracy']:.2f} % in {result['seconds']} s", flush=True)


def wanted_runs(families: list[Family], phase: str, validated: list[Result]) -> list[CellRun]:
    """The runs of a phase; those of the second for which the first has chosen."""
    if phase == "validation":
        return [run for family in families for run in family.validation_runs()]
    return [run for family in families for run in family.final_runs(validated)]


def main(arguments: list[str] | None = None) -> None:
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("study", nargs="?", choices=STUDIES, help="default: all of them")
    command.add_argument("--phase", choices=PHASES, help="default: both, one after the other")
    command.add_argument("--only", nargs="+", default=[], metavar="WORD", help="families whose names hold all of these")
    command.add_argument("--part", type=part, default=(1, 1), metavar="I/N", help="this process's share of the runs")
    command.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    command.add_argument("--data-dir", type=Path)
    command.add_argument("--out", type=Path, metavar="DIR", help="where new results go; default: beside the script")
    command.add_argument("--limit-s", type=float, default=math.inf, metavar="S", help="start no run after S seconds")
    command.add_argument("--page", action="store_true", help="write docs/results/tuned.md from what is there")
    options = command.parse_args(arguments)
    if options.page:
        from experiments.tuned.page import write

        print(write())
        return
    torch.set_float32_matmul_precision("highest")
    began = time.perf_counter()
    for study in [options.study] if options.study else STUDIES:
        found = list(STUDIES[study]((f"device={options.device}",), options.data_dir))
        families = [family for family in found if set(options.only) <= set(family.key)]
        for phase in [options.phase] if options.phase else PHASES:
            _conduct(study, phase, families, options, began)


def _conduct(study: str, phase: str, families: list[Family], options: argparse.Namespace, began: float) -> None:
    kept = ResultsFile(options.out or HERE / "results" / study / phase)
    there = {identity(each) for each in (*results(study, phase), *kept.read_by_key().values())}
    first, parts = options.part
    wanted = {run_identity(run): run for run in wanted_runs(families, phase, results(study, "validation"))}
    missing = [run for name, run in wanted.items() if name not in there][first - 1 :: parts]
    data = ValidationData() if phase == "validation" else comparison.DataCache()
    for run in missing:
        if time.perf_counter() - began > options.limit_s or not comparison.run_comparison(
            [run], kept, data, _Printer()
        ):
            return


if __name__ == "__main__":
    main()
