"""Shows that the public code of Heikkilä (2025) draws no noise, and trains its setting with and without noise.

python -m experiments.no_noise.reproduce --draws cpu cuda                  # what torch.poisson gives at its rates
python -m experiments.no_noise.reproduce --device cuda --data-dir DATA     # the runs on Fashion-MNIST
python -m experiments.no_noise.reproduce --page                            # docs/results/no_noise.md
"""

import json

import torch

from experiments.common.conduct import Conductor, completion_message, parser
from experiments.no_noise import draws
from experiments.no_noise.cells import HERE, SEEDS, WORK, asked

DRAWS = "draws.jsonl"


def main(arguments: list[str] | None = None) -> None:
    wanted = parser(__doc__, WORK, "no_noise.md")
    wanted.add_argument("--draws", nargs="+", choices=("cpu", "cuda"), metavar="DEVICE", help="draw on these devices")
    given = wanted.parse_args(arguments)
    if given.page:
        from experiments.no_noise.page import write

        print(write())
        return
    if given.draws:
        lines = [json.dumps(line) for device in given.draws for line in draws.measure(device)]
        folder = given.out or HERE
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DRAWS).write_text("\n".join(lines) + "\n")
        return
    torch.set_float32_matmul_precision("highest")
    conductor = Conductor(given, HERE)
    cells = [each.cell(conductor.settings, given.data_dir) for each in asked() if given.only in (None, each.work)]
    print(completion_message(conductor.run_all(cells, SEEDS)))


if __name__ == "__main__":
    main()
