"""Runs paper 004's algorithms at one certified ε and keeps what each gave; run again, it goes on where it stopped.

python -m experiments.fedsam.reproduce --device cuda --data-dir DATA --seeds 3
python -m experiments.fedsam.reproduce --only femnist --limit-s 500 --out OUT    # results into OUT/results.jsonl
python -m experiments.fedsam.reproduce --page                                    # the page, from all results so far
"""

import argparse
import math
import time
from pathlib import Path

import torch

from experiments.common.conduct import conduct
from experiments.fedsam.cells import HERE, SETTINGS, asked, results


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(SETTINGS), help="default: all federations")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rounds", type=int, metavar="T", help="instead of the files' own, to try it out; needs --out")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where new results go; default: beside this file")
    parser.add_argument("--limit-s", type=float, default=math.inf, metavar="S", help="start no run after S seconds")
    parser.add_argument("--page", action="store_true", help="write docs/results/fedsam.md from what is there")
    given = parser.parse_args(arguments)
    if given.rounds and not given.out:
        parser.error("--rounds makes other runs than the page shows: say with --out where they go")
    if given.page:
        from experiments.fedsam.page import write  # drawing takes a while to import

        print(write(results()))
        return
    torch.set_float32_matmul_precision("highest")
    settings = (f"device={given.device}", *([f"rounds={given.rounds}"] if given.rounds else []))
    began, done = time.perf_counter(), True
    for radii in (False, True):  # every seed of the methods, and then what is looked at beside
        found = [each.cell(settings, given.data_dir) for each in asked(given.only) if bool(each.radius) == radii]
        limit = given.limit_s - (time.perf_counter() - began)
        done = conduct(found, given.seeds, HERE, given.out, limit) and done
    print("All runs are made." if done else "Some runs are still to be made: the same command goes on.")


if __name__ == "__main__":
    main()
