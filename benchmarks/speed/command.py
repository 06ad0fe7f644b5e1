"""`python -m benchmarks`: measure cases, keep what was measured, and write the page."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import results
import torch

from discreet.client_layers.precision import GradientPrecision
from speed.case import Case
from speed.measurements import Entry, Key, add_entry, read_entries, write_entries
from speed.page import render_page
from speed.registry import CASES
from speed.runner import Limits, WorkDiffers, measure

KEPT = results.FOLDER / "speed.json"


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    options = _parser().parse_args(arguments)
    if options.list:
        print("\n".join(f"{case.name:24}{case.title}" for case in CASES.values()))
        return 0
    kept = KEPT if options.write or options.merge else options.results
    entries = read_entries(kept) if kept else {}
    failed = 0
    if options.merge:
        for entry in read_entries(options.merge).values():
            add_entry(entries, entry)
        write_entries(KEPT, entries, CASES)
    elif not options.page:
        failed = _measure_all(options, entries, kept)
    if options.write or options.merge or options.page:
        entries = read_entries(KEPT) if options.page else entries
        KEPT.with_suffix(".md").write_text(render_page(entries, CASES), encoding="utf-8")
    return failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the cases")
    parser.add_argument(
        "--case", action="append", choices=list(CASES), metavar="NAME", help="only this case; repeatable"
    )
    parser.add_argument("--device", choices=list(results.DEVICES), default="cpu", help="where to compute (cpu)")
    parser.add_argument("--precision", action="append", metavar="NAME", help="only float32, tf32 or bf16; repeatable")
    parser.add_argument("--size", choices=("cpu", "cuda", "tiny"), help="how much work; by default that of the device")
    parser.add_argument("--turns", type=int, default=7, help="turns of each side (7)")
    parser.add_argument("--limit-s", type=float, help="begin nothing after so many seconds; --go-on does the rest")
    parser.add_argument("--go-on", action="store_true", help="leave finished cases out, and finish the others")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep the measurements in this file")
    parser.add_argument("--write", action="store_true", help="keep them in docs/results/speed.json, and write speed.md")
    parser.add_argument("--merge", type=Path, metavar="FILE", help="measure nothing: take over the --results of a run")
    parser.add_argument("--page", action="store_true", help="measure nothing: write speed.md from what is kept")
    return parser


def _measure_all(options: argparse.Namespace, entries: dict[Key, Entry], kept: Path | None) -> int:
    """Measure what is asked for, one case at a time, and keep each as soon as it is there."""
    deadline = float("inf") if options.limit_s is None else time.monotonic() + options.limit_s
    limits, failed = Limits(options.turns, deadline), 0
    for case, precision in _chosen_units(options):
        key = (case.name, options.device, precision)
        before, size = entries.get(key) if options.go_on else None, options.size or options.device
        if before is not None and before.size == dict(case.sizes[size]) and before.has_turns(options.turns):
            continue
        if limits.is_over:
            print(f"The time is over before {case.name} in {precision}; --go-on does the rest.", file=sys.stderr)
            break
        try:
            entry = measure(case, options.device, precision, size, limits, before)
        except (WorkDiffers, torch.OutOfMemoryError) as problem:
            print(f"{case.name} in {precision}: {problem}", file=sys.stderr)
            failed = 1
            continue
        print(_summary(entry), flush=True)
        if entry.sides and any(side.seconds for side in entry.sides):
            add_entry(entries, entry)
        if kept is not None:
            write_entries(kept, entries, CASES)
    return failed


def _chosen_units(options: argparse.Namespace) -> Iterator[tuple[Case, GradientPrecision]]:
    for name in options.case or CASES:
        case = CASES[name]
        if options.device not in case.sizes:
            continue
        for precision in case.precisions.get(options.device, ()):
            if not options.precision or precision in options.precision:
                yield case, precision


def _summary(entry: Entry) -> str:
    times = ", ".join(f"{side.name} {1000 * side.median:.2f} ms" for side in entry.sides if side.seconds)
    state = "" if entry.is_complete else " (unfinished)"
    return f"{entry.case} on {entry.device} in {entry.precision}{state}: {times or 'no turn'}"
