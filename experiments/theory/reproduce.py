"""Runs a strongly convex task beside Fu et al.'s Theorem 3. Run again, it continues where it stopped.

python -m experiments.theory.reproduce           # about four minutes on one core, then the page
python -m experiments.theory.reproduce --page    # the page alone, from all results
"""

import argparse
from pathlib import Path

import torch

from discreet.experiment.comparison.comparison_results import ResultsFile
from experiments.theory.cases import HERE, SEEDS, all_cases


def make(out: Path = HERE) -> None:
    """Every run that is not there yet."""
    from experiments.theory.simulation import run

    kept, cases = ResultsFile(out), all_cases()
    there = kept.read_by_key()
    with kept.lock():
        for seed in range(SEEDS):
            for case in cases:
                if case.key(seed) not in there:
                    kept.append(run(case, seed))
            print(f"seed {seed + 1} of {SEEDS}: {len(cases)} runs are there", flush=True)


def count_missing(out: Path = HERE) -> int:
    there = ResultsFile(out).read_by_key()
    return sum(case.key(seed) not in there for seed in range(SEEDS) for case in all_cases())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="write docs/results/theory.md from what is there")
    options = parser.parse_args(arguments)
    if not options.page:
        torch.set_num_threads(1)  # tiny matrices
        make()
    if missing := count_missing():
        parser.error(f"--page: {missing} runs were not made yet; without --page they are")
    from experiments.theory.page import write  # drawing takes a while to import

    print(write(ResultsFile(HERE).read_by_key()))


if __name__ == "__main__":
    main()
