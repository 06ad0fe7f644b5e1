"""Tunes each way to train on one seed, runs the best of each on three others; run again, it goes on where it stopped.

python -m experiments.local_steps.reproduce --device cuda --data-dir DATA
python -m experiments.local_steps.reproduce --only mnist --limit-s 500 --out OUT    # results into OUT/results.jsonl
python -m experiments.local_steps.reproduce --page                                  # the page, from all results so far
"""

import argparse
import math
import time
from pathlib import Path

import torch

from discreet.experiment.results import Results
from experiments.common.conduct import conduct
from experiments.local_steps.cells import HERE, METHODS, ROUNDS, SEEDS, SETS, TUNED_ON, WIDER, Asked, best, grid


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(SETS), help="default: both data sets")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    parser.add_argument("--rounds", nargs="+", type=int, choices=ROUNDS, default=list(ROUNDS), metavar="R")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where new results go; default: beside this file")
    parser.add_argument("--limit-s", type=float, default=math.inf, metavar="S", help="start no run after S seconds")
    parser.add_argument("--page", action="store_true", help="write docs/results/local_steps.md from what is there")
    given = parser.parse_args(arguments)
    if given.page:
        from experiments.local_steps.page import write

        print(write())
        return
    torch.set_float32_matmul_precision("highest")
    done = all(_made(data, given) for data in SETS if given.only in (None, data))
    print("All runs are made." if done else "Some runs are still to be made: the same command goes on.")


def _made(data: str, given: argparse.Namespace, began: float = time.perf_counter()) -> bool:
    """First the grids, on one seed; then the best of each, on all: whether all of it is there now."""
    wanted = [(method, rounds) for rounds in given.rounds for method in given.methods]
    points = [each for method, rounds in wanted for each in grid(data, method, rounds)]
    if not _conducted(points, TUNED_ON + 1, given, began):
        return False
    there = list((Results(HERE).found() | Results(given.out or HERE).found()).values())
    winners = [best(there, data, method, rounds) for method, rounds in wanted]
    beyond = [each for each in WIDER if each.data == data and (each.method, each.rounds) in wanted]
    return _conducted([each for each in winners if each is not None] + beyond, max(SEEDS) + 1, given, began)


def _conducted(asked: list[Asked], seeds: int, given: argparse.Namespace, began: float) -> bool:
    found = [each.cell((f"device={given.device}",), given.data_dir) for each in asked]
    return conduct(found, seeds, HERE, given.out, given.limit_s - (time.perf_counter() - began))


if __name__ == "__main__":
    main()
