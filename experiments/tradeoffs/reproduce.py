"""Runs Kim et al.'s trade-offs and keeps what each run gave. Run again, it continues where it stopped.

python -m experiments.tradeoffs.reproduce --data-dir DATA     # minutes on a CPU
python -m experiments.tradeoffs.reproduce --page              # the page, from all results so far
"""

import argparse
from pathlib import Path

import torch

from discreet.experiment.comparison import cells, comparison
from discreet.experiment.comparison.comparison_results import Result, ResultsFile
from experiments.common.conduct import conduct
from experiments.tradeoffs import plans
from experiments.tradeoffs.points import HERE, first_rates, points


def results() -> list[Result]:
    return list(ResultsFile(HERE).read_by_key().values())


def count_missing(found: list[Result]) -> int:
    """How many of the page's rows, at each learning rate, have no run at all."""
    there = {(each["name"], *each["swept"].values()) for each in found if each["name"] != plans.NAME}
    return sum((point.file, *point.swept.values()) not in there for point in points())


def plan(seeds: int, settings: tuple[str, ...], data_dir: Path | None, out: Path = HERE) -> None:
    """Keep what each row plans for each seed, where that is not there yet."""
    kept, data = ResultsFile(out), comparison.DataCache()
    runs = cells.list_runs([point.cell(settings, data_dir) for point in first_rates()], seeds)
    there = kept.read_by_key()
    with kept.lock():
        for run in runs:
            if plans.key(run) not in there:
                kept.append(plans.plan_row(run, data))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--page", action="store_true", help="write docs/results/tradeoffs.md from what is there")
    options = parser.parse_args(arguments)
    if not options.page:
        torch.set_float32_matmul_precision("highest")
        settings = (f"device={options.device}",)
        plan(options.seeds, settings, options.data_dir)
        if not conduct([point.cell(settings, options.data_dir) for point in points()], options.seeds, HERE):
            print("Some runs are still to be made: the same command goes on.")
            return
    if missing := count_missing(results()):
        parser.error(f"--page: {missing} of {len(points())} rows were not run yet; without --page they are")
    from experiments.tradeoffs.page import write  # drawing takes a while to import

    print(write(results()))


if __name__ == "__main__":
    main()
