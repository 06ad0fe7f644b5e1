"""Shows that the public code of Heikkilä (2025) draws no noise, and trains its setting with and without noise.

python -m experiments.no_noise.reproduce --draws cpu cuda                  # what torch.poisson gives at its rates
python -m experiments.no_noise.reproduce --device cuda --data-dir DATA     # the runs on Fashion-MNIST
python -m experiments.no_noise.reproduce --page                            # docs/results/no_noise.md
"""

import json

import torch

from experiments.common.conduct import Conductor, completion_message, parser
from experiments.no_noise import draws
from experiments.no_noise.cells import HERE, SEEDS, WORK, list_variants

DRAWS = "draws.jsonl"


def main(arguments: list[str] | None = None) -> None:
    command = parser(__doc__, WORK, "no_noise.md")
    command.add_argument("--draws", nargs="+", choices=("cpu", "cuda"), metavar="DEVICE", help="draw on these devices")
    options = command.parse_args(arguments)
    if options.page:
        from experiments.no_noise.page import write

        print(write())
        return
    if options.draws:
        lines = [json.dumps(line) for device in options.draws for line in draws.measure(device)]
        folder = options.out or HERE
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DRAWS).write_text("\n".join(lines) + "\n")
        return
    torch.set_float32_matmul_precision("highest")
    conductor = Conductor(options, HERE)
    cells = [
        each.cell(conductor.settings, options.data_dir) for each in list_variants() if options.only in (None, each.work)
    ]
    print(completion_message(conductor.run_all(cells, SEEDS)))


if __name__ == "__main__":
    main()
