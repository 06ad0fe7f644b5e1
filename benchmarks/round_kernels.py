"""Which GPU kernels one round of ours is made of: the cases of `python -m benchmarks`, profiled one by one.

For each case it prints how long a round takes, how much of it the GPU computes, and the kernels that take longest, by
name. Times are means over the profiled rounds, which the profiler itself makes a little longer.
"""

import argparse
import gc
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from speed.case import COMPILED, OURS, Setting
from speed.precision import both_sides_in
from speed.registry import CASES
from torch.profiler import ProfilerActivity, profile

from discreet.client_layers.precision import GradientPrecision

WARM_UP, ROUNDS = 4, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=list(CASES), metavar="NAME", help="repeatable")
    parser.add_argument("--precision", action="append", metavar="NAME", help="float32, tf32 or bf16; repeatable")
    parser.add_argument(
        "--side", action="append", choices=(OURS, COMPILED), help="with or without `compile`; repeatable"
    )
    parser.add_argument("--most", type=int, default=12, help="kernels to print of each case (12)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all kernels in this file")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("There is no CUDA device here.")
    found = {}
    for name in options.case or ["pfl_round"]:
        for precision in options.precision or ["tf32"]:
            for side in options.side or [OURS, COMPILED]:
                if (measured := _profile(name, precision, side)) is not None:
                    found[f"{name} {precision} {side}"] = measured
                    print(_text(f"{name}, {precision}, {side}", measured, options.most), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _profile(name: str, precision: GradientPrecision, side: str) -> dict[str, Any] | None:
    """Return a round's milliseconds, those of the GPU and of each kernel, and their counts; None for no such side."""
    case = CASES[name]
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with both_sides_in(precision):
        sides = case.sides(Setting("cuda", precision, case.sizes["cuda"]))
        if side not in sides:
            return None
        contestant = sides[side]()
        first = _time_rounds(contestant.run, 1)
        for _ in range(WARM_UP):
            contestant.run()
        wall = _time_rounds(contestant.run, ROUNDS)
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            for _ in range(ROUNDS):
                contestant.run()
            torch.cuda.synchronize()
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for event in profiler.events():
        if event.device_type.name == "CUDA":
            times[event.name] += event.device_time_total / 1000 / ROUNDS
            counts[event.name] += 1
    kernels = [[kernel, round(spent, 4), counts[kernel] / ROUNDS] for kernel, spent in times.most_common()]
    launches, memory = sum(counts.values()) / ROUNDS, torch.cuda.max_memory_allocated() / 1e9
    spent = {"first_ms": first, "round_ms": wall, "gpu_ms": sum(times.values())}
    return spent | {"launches": launches, "memory_gb": memory, "kernels": kernels}


def _time_rounds(run: Callable[[], object], rounds: int) -> float:
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(rounds):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / rounds * 1000


def _text(title: str, measured: dict[str, Any], most: int) -> str:
    head = "{}: {:.2f} ms a round, {:.2f} ms of it on the GPU, {:.0f} kernels; {:.1f} s the first, {:.1f} GB".format(
        title,
        measured["round_ms"],
        measured["gpu_ms"],
        measured["launches"],
        measured["first_ms"] / 1000,
        measured["memory_gb"],
    )
    rows = [f"  {spent:9.3f} ms {count:7.0f} × {kernel[:110]}" for kernel, spent, count in measured["kernels"][:most]]
    return "\n".join([head, *rows])


if __name__ == "__main__":
    main()
