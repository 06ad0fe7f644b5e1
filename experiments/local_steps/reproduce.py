"""Tunes each way to train on validation data of one seed, and runs the best on three others. Run again, it continues.

python -m experiments.local_steps.reproduce --device cuda --data-dir DATA
python -m experiments.local_steps.reproduce --only mnist --limit-s 500 --out OUT    # results into OUT/results.jsonl
python -m experiments.local_steps.reproduce --page                                  # the page, from all results so far
"""

import torch

from experiments.common.conduct import Conductor, completion_message, parser
from experiments.common.tuning import validation_cell
from experiments.local_steps.cells import HERE, METHODS, ROUNDS, SEEDS, SETS, TUNED_ON, Variant, best, grid, one_pass


def main(arguments: list[str] | None = None) -> None:
    command = parser(__doc__, SETS, "local_steps.md")
    command.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    command.add_argument("--rounds", nargs="+", type=int, choices=ROUNDS, default=list(ROUNDS), metavar="R")
    options = command.parse_args(arguments)
    if options.page:
        from experiments.local_steps.page import write

        print(write())
        return
    torch.set_float32_matmul_precision("highest")
    conductor = Conductor(options, HERE)
    print(completion_message(all(_run_data_set(data, conductor) for data in SETS if options.only in (None, data))))


def _run_data_set(data: str, conductor: Conductor) -> bool:
    """First the grids, on one seed; then the best of each, on all: whether all of it is there now."""
    options = conductor.arguments
    wanted = [(method, rounds) for rounds in options.rounds for method in options.methods]
    points = [each for method, rounds in wanted for each in grid(data, method, rounds)]
    tried = [validation_cell(each.cell(conductor.settings, options.data_dir)) for each in points]
    if not conductor.run_all(tried, TUNED_ON + 1):
        return False
    there = conductor.all_results()
    grids = [grid(data, method, rounds) for method, rounds in wanted]
    grids += [one_pass(data, rounds) for method, rounds in wanted if method == "claim"]
    winners = dict.fromkeys(best(there, points) for points in grids)  # one may win in two
    return _run_variants([each for each in winners if each is not None], max(SEEDS) + 1, conductor)


def _run_variants(variants: list[Variant], seeds: int, conductor: Conductor) -> bool:
    return conductor.run_all([each.cell(conductor.settings, conductor.arguments.data_dir) for each in variants], seeds)


if __name__ == "__main__":
    main()
