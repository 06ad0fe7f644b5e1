"""Runs Heikkilä's settings and what is certified beside them. Run again, it continues where it stopped.

python -m experiments.distributed.reproduce --device cuda --data-dir DATA
python -m experiments.distributed.reproduce --only cifar --rounds 10 20 --limit-s 500 --out OUT
python -m experiments.distributed.reproduce --page    # docs/results/distributed.md, from all results so far
"""

import torch

from experiments.common.conduct import Conductor, completion_message, parser
from experiments.common.tuning import validation_cell
from experiments.distributed.cells import HERE, METHODS, SEEDS, SETS, TUNED_ON, Variant, best, grid, methods, seeds


def main(arguments: list[str] | None = None) -> None:
    command = parser(__doc__, SETS, "distributed.md")
    command.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    command.add_argument("--rounds", nargs="+", type=int, metavar="R", help="default: all that a data set has")
    command.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="number of reported seeds; default: all")
    options = command.parse_args(arguments)
    if options.page:
        from experiments.distributed.page import write

        print(write())
        return
    torch.set_float32_matmul_precision("highest")
    conductor = Conductor(options, HERE)
    print(completion_message(all(_run_data_set(data, conductor) for data in SETS if options.only in (None, data))))


def _run_data_set(data: str, conductor: Conductor) -> bool:
    """For each number of rounds first the grids, on one seed; then the best of each: whether all of it is there now."""
    options = conductor.arguments
    for rounds in SETS[data].rounds:
        if options.rounds is not None and rounds not in options.rounds:
            continue
        wanted = [method for method in methods(data) if method in options.methods]
        points = [each for method in wanted if METHODS[method].tuned for each in grid(data, method, rounds)]
        tried = [validation_cell(each.cell(conductor.settings, options.data_dir)) for each in points]
        if not conductor.run_all(tried, TUNED_ON + 1):
            return False
        there = conductor.all_results()
        winners = [each for method in wanted if (each := best(there, data, method, rounds)) is not None]
        for stop in (options.seeds, TUNED_ON + 1 + options.seeds):  # of what is not tuned, and of what is
            group = [each for each in winners if seeds(each.method)[: options.seeds].stop == stop]
            if not _run_variants(group, stop, conductor):
                return False
    return True


def _run_variants(variants: list[Variant], seeds: int, conductor: Conductor) -> bool:
    return conductor.run_all([each.cell(conductor.settings, conductor.arguments.data_dir) for each in variants], seeds)


if __name__ == "__main__":
    main()
