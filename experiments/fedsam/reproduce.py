"""Runs Shi et al.'s algorithms at one certified ε and keeps what each gave. Run again, it continues where it stopped.

python -m experiments.fedsam.reproduce --device cuda --data-dir DATA --seeds 3
python -m experiments.fedsam.reproduce --only femnist --limit-s 500 --out OUT    # results into OUT/results.jsonl
python -m experiments.fedsam.reproduce --page                                    # the page, from all results so far
"""

import torch

from experiments.common.conduct import Conductor, completion_message, parser
from experiments.fedsam.cells import HERE, SETTINGS, list_variants, results


def main(arguments: list[str] | None = None) -> None:
    command = parser(__doc__, SETTINGS, "fedsam.md")
    command.add_argument("--seeds", type=int, default=3, metavar="N")
    command.add_argument(
        "--rounds", type=int, metavar="T", help="instead of the files' own, to try it out; needs --out"
    )
    options = command.parse_args(arguments)
    if options.rounds and not options.out:
        command.error("--rounds makes other runs than the page shows: say with --out where they go")
    if options.page:
        from experiments.fedsam.page import write  # drawing takes a while to import

        print(write(results()))
        return
    torch.set_float32_matmul_precision("highest")
    conductor, done = Conductor(options, HERE), True
    settings = (*conductor.settings, *([f"rounds={options.rounds}"] if options.rounds else []))
    for radii in (False, True):  # every seed of the methods, and then what is looked at beside
        found = [
            each.cell(settings, options.data_dir) for each in list_variants(options.only) if bool(each.radius) == radii
        ]
        done = conductor.run_all(found, options.seeds) and done
    print(completion_message(done))


if __name__ == "__main__":
    main()
