"""Runs paper 003's figures and keeps what each run gave; run again, it goes on where it stopped.

python -m experiments.iterations.reproduce --only laplace --seeds 5 --data-dir DATA
python -m experiments.iterations.reproduce --only gaussian --device cuda --data-dir DATA
python -m experiments.iterations.reproduce --only gaussian --limit-s 500 --out OUT    # results into OUT/results.jsonl
python -m experiments.iterations.reproduce --page                                     # the page, from all so far
"""

import argparse
import math
import time
from pathlib import Path

import torch

from experiments.common.conduct import conduct
from experiments.iterations.measured import Measured, chosen, results
from experiments.iterations.noise import FEDERATIONS
from experiments.iterations.points import HERE, Point, sweeps, tuning


def lacking(points: list[Point], kind: str, seeds: int, out: Path | None) -> list[Point]:
    """Those without a result of every seed."""
    measured = Measured.of(kind, results(out))
    return [point for point in points if not set(range(seeds)) <= set(measured.at(point))]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(FEDERATIONS), help="default: all files")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where new results go; default: beside this file")
    parser.add_argument("--limit-s", type=float, default=math.inf, metavar="S", help="start no run after S seconds")
    parser.add_argument("--page", action="store_true", help="write docs/results/iterations.md from what is there")
    given = parser.parse_args(arguments)
    if given.page:
        from experiments.iterations.page import write  # drawing takes a while to import

        print(write(results()))
        return
    began = time.perf_counter()
    torch.set_float32_matmul_precision("highest")

    def made(kind: str, points: list[Point]) -> bool:
        cells = [
            point.cell((f"device={given.device}",), given.data_dir)
            for point in lacking(points, kind, given.seeds, given.out)
        ]
        return conduct(cells, given.seeds, HERE, given.out, given.limit_s - (time.perf_counter() - began))

    done = True
    for kind in [given.only] if given.only else FEDERATIONS:
        done = done and made(kind, tuning(kind))
        if done:
            rate, clip = chosen(results(given.out), kind)
            print(f"{kind}: a learning rate of {rate:g} and a clip of {clip:g} are chosen", flush=True)
            done = made(kind, sweeps(kind, rate, clip))
    print("All runs are made." if done else "Some runs are still to be made: the same command goes on.")


if __name__ == "__main__":
    main()
