"""Runs Fu et al.'s figures and keeps what each run gave; run again, it goes on where it stopped.

python -m experiments.iterations.reproduce --only laplace --seeds 5 --data-dir DATA
python -m experiments.iterations.reproduce --only gaussian --device cuda --data-dir DATA
python -m experiments.iterations.reproduce --only gaussian --limit-s 500 --out OUT    # results into OUT/results.jsonl
python -m experiments.iterations.reproduce --page                                     # the page, from all so far
"""

from pathlib import Path

import torch

from experiments.common.conduct import Conductor, completion_message, parser
from experiments.iterations.measured import Measured, chosen, results
from experiments.iterations.noise import FEDERATIONS
from experiments.iterations.points import HERE, Point, sweeps, tuning


def lacking(points: list[Point], kind: str, seeds: int, out: Path | None) -> list[Point]:
    """Those without a result of every seed."""
    measured = Measured.from_results(kind, results(out))
    return [point for point in points if not set(range(seeds)) <= set(measured.at(point))]


def main(arguments: list[str] | None = None) -> None:
    asked = parser(__doc__, FEDERATIONS, "iterations.md")
    asked.add_argument("--seeds", type=int, default=3, metavar="N")
    given = asked.parse_args(arguments)
    if given.page:
        from experiments.iterations.page import write  # drawing takes a while to import

        print(write(results()))
        return
    torch.set_float32_matmul_precision("highest")
    conductor = Conductor(given, HERE)

    def made(kind: str, points: list[Point]) -> bool:
        missing = lacking(points, kind, given.seeds, given.out)
        return conductor.run_all([point.cell(conductor.settings, given.data_dir) for point in missing], given.seeds)

    done = True
    for kind in [given.only] if given.only else FEDERATIONS:
        done = done and made(kind, tuning(kind))
        if done:
            rate, clip = chosen(results(given.out), kind)
            print(f"{kind}: a learning rate of {rate:g} and a clip of {clip:g} are chosen", flush=True)
            done = made(kind, sweeps(kind, rate, clip))
    print(completion_message(done))


if __name__ == "__main__":
    main()
