"""Runs Heikkilä's settings and what is certified beside them; run again, it goes on where it stopped.

python -m experiments.distributed.reproduce --device cuda --data-dir DATA
python -m experiments.distributed.reproduce --only cifar --rounds 10 20 --limit-s 500 --out OUT
python -m experiments.distributed.reproduce --page    # docs/results/distributed.md, from all results so far
"""

import torch

from experiments.common.conduct import Conductor, completion_message, parser
from experiments.distributed.cells import HERE, METHODS, SEEDS, SETS, TUNED_ON, Asked, best, grid, methods, seeds


def main(arguments: list[str] | None = None) -> None:
    asked = parser(__doc__, SETS, "distributed.md")
    asked.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    asked.add_argument("--rounds", nargs="+", type=int, metavar="R", help="default: all that a data set has")
    asked.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="that are told; default: all")
    given = asked.parse_args(arguments)
    if given.page:
        from experiments.distributed.page import write

        print(write())
        return
    torch.set_float32_matmul_precision("highest")
    conductor = Conductor(given, HERE)
    print(completion_message(all(_made(data, conductor) for data in SETS if given.only in (None, data))))


def _made(data: str, conductor: Conductor) -> bool:
    """For each number of rounds first the grids, on one seed; then the best of each: whether all of it is there now."""
    given = conductor.given
    for rounds in SETS[data].rounds:
        if given.rounds is not None and rounds not in given.rounds:
            continue
        wanted = [method for method in methods(data) if method in given.methods]
        points = [each for method in wanted if METHODS[method].tuned for each in grid(data, method, rounds)]
        if not _conducted(points, TUNED_ON + 1, conductor):
            return False
        there = conductor.all_results()
        winners = [each for method in wanted if (each := best(there, data, method, rounds)) is not None]
        for stop in (given.seeds, TUNED_ON + 1 + given.seeds):  # of what is not tuned, and of what is
            told = [each for each in winners if seeds(each.method)[: given.seeds].stop == stop]
            if not _conducted(told, stop, conductor):
                return False
    return True


def _conducted(asked: list[Asked], seeds: int, conductor: Conductor) -> bool:
    return conductor.run_all([each.cell(conductor.settings, conductor.given.data_dir) for each in asked], seeds)


if __name__ == "__main__":
    main()
