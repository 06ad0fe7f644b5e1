"""Runs Fu et al.'s figures and keeps what each run gave. Run again, it continues where it stopped.

python -m experiments.iterations.reproduce --only laplace --seeds 5 --data-dir DATA
python -m experiments.iterations.reproduce --only gaussian --device cuda --data-dir DATA
python -m experiments.iterations.reproduce --only gaussian --limit-s 500 --out OUT    # results into OUT/results.jsonl
python -m experiments.iterations.reproduce --page                                     # the page, from all so far
"""

from pathlib import Path

import torch

from experiments.common.conduct import Conductor, completion_message, parser
from experiments.iterations.noise import FEDERATIONS
from experiments.iterations.point_results import PointResults, choose_rate_and_clip, results
from experiments.iterations.points import HERE, Point, sweeps, tuning


def missing_points(points: list[Point], kind: str, seeds: int, out: Path | None) -> list[Point]:
    """Those without a result of every seed."""
    measured = PointResults.from_results(kind, results(out))
    return [point for point in points if not set(range(seeds)) <= set(measured.by_seed(point))]


def main(arguments: list[str] | None = None) -> None:
    command = parser(__doc__, FEDERATIONS, "iterations.md")
    command.add_argument("--seeds", type=int, default=3, metavar="N")
    options = command.parse_args(arguments)
    if options.page:
        from experiments.iterations.page import write  # drawing takes a while to import

        print(write(results()))
        return
    torch.set_float32_matmul_precision("highest")
    conductor = Conductor(options, HERE)

    def run_points(kind: str, points: list[Point]) -> bool:
        missing = missing_points(points, kind, options.seeds, options.out)
        return conductor.run_all([point.cell(conductor.settings, options.data_dir) for point in missing], options.seeds)

    done = True
    for kind in [options.only] if options.only else FEDERATIONS:
        done = done and run_points(kind, tuning(kind))
        if done:
            rate, clip = choose_rate_and_clip(results(options.out), kind)
            print(f"{kind}: a learning rate of {rate:g} and a clip of {clip:g} are chosen", flush=True)
            done = run_points(kind, sweeps(kind, rate, clip))
    print(completion_message(done))


if __name__ == "__main__":
    main()
