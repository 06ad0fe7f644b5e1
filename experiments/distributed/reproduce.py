"""Runs paper 002's settings and what is certified beside them; run again, it goes on where it stopped.

python -m experiments.distributed.reproduce --device cuda --data-dir DATA
python -m experiments.distributed.reproduce --only cifar --rounds 10 20 --limit-s 500 --out OUT
python -m experiments.distributed.reproduce --page    # docs/results/distributed.md, from all results so far
"""

import argparse
import math
import time
from pathlib import Path

import torch

from discreet.experiment.results import Results
from experiments.common.conduct import conduct
from experiments.distributed.cells import HERE, METHODS, SEEDS, SETS, TUNED_ON, Asked, best, grid, methods, seeds


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(SETS), help="default: all data sets")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    parser.add_argument("--rounds", nargs="+", type=int, metavar="R", help="default: all that a data set has")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="that are told; default: all")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where new results go; default: beside this file")
    parser.add_argument("--limit-s", type=float, default=math.inf, metavar="S", help="start no run after S seconds")
    parser.add_argument("--page", action="store_true", help="write the page from what is there")
    given = parser.parse_args(arguments)
    if given.page:
        from experiments.distributed.page import write

        print(write())
        return
    torch.set_float32_matmul_precision("highest")
    began = time.perf_counter()
    done = all(_made(data, given, began) for data in SETS if given.only in (None, data))
    print("All runs are made." if done else "Some runs are still to be made: the same command goes on.")


def _made(data: str, given: argparse.Namespace, began: float) -> bool:
    """For each number of rounds first the grids, on one seed; then the best of each: whether all of it is there now."""
    for rounds in SETS[data].rounds:
        if given.rounds is not None and rounds not in given.rounds:
            continue
        wanted = [method for method in methods(data) if method in given.methods]
        points = [each for method in wanted if METHODS[method].tuned for each in grid(data, method, rounds)]
        if not _conducted(points, TUNED_ON + 1, given, began):
            return False
        there = list((Results(HERE).found() | Results(given.out or HERE).found()).values())
        winners = [each for method in wanted if (each := best(there, data, method, rounds)) is not None]
        for stop in (given.seeds, TUNED_ON + 1 + given.seeds):  # of what is not tuned, and of what is
            told = [each for each in winners if seeds(each.method)[: given.seeds].stop == stop]
            if not _conducted(told, stop, given, began):
                return False
    return True


def _conducted(asked: list[Asked], seeds: int, given: argparse.Namespace, began: float) -> bool:
    found = [each.cell((f"device={given.device}",), given.data_dir) for each in asked]
    return conduct(found, seeds, HERE, given.out, given.limit_s - (time.perf_counter() - began))


if __name__ == "__main__":
    main()
