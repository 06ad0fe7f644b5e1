"""Measure a case: all sides take turns in one process, after each did the same work and its loss was compared."""

import gc
import math
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import results
import torch

from discreet.client_layers.precision import GradientPrecision
from discreet.code_version import read_code_version
from speed.case import OURS, Case, Contestant, Setting
from speed.measurements import Entry, SideTimes
from speed.precision import both_sides_in

PACKAGES = ("discreet", "torch", "pfl", "opacus", "dp-accounting", "flwr", "numpy")
TURN_SECONDS = 0.3  # a turn repeats its work until it takes about so long
MOST_CALLS = 50


class WorkDiffers(Exception):
    """A side's loss shows that it did not do the same work."""


class Limits(NamedTuple):
    """How long to measure.

    Attributes:
        turns: Turns of each side.
        deadline: By `clock`, when no further turn may begin.
        clock: What time it is.
    """

    turns: int
    deadline: float = math.inf
    clock: Callable[[], float] = time.monotonic

    @property
    def is_over(self) -> bool:
        return self.clock() >= self.deadline


def measure(
    case: Case, device: str, precision: GradientPrecision, size_name: str, limits: Limits, before: Entry | None
) -> Entry:
    """Return what was measured, with the turns of an unfinished entry that this one continues.

    Raises:
        WorkDiffers: The sides did not do the same work, so their times say nothing.
    """
    setting = Setting(device, precision, case.sizes[size_name])
    entry = _begin_entry(case, setting, limits.turns)
    with both_sides_in(precision):
        contestants, lasted = {}, {}
        for name, make in case.sides(setting).items():
            side, contestants[name], lasted[name] = _check_side(name, make, case, setting)
            entry.sides.append(side)
        check_work(case, entry)
        if before is not None and entry.continues(before):
            for side, earlier in zip(entry.sides, before.sides, strict=True):
                side.seconds = list(earlier.seconds)
        calls = {name: _choose_calls(seconds) for name, seconds in lasted.items()}
        for turn in range(min(len(side.seconds) for side in entry.sides), limits.turns):
            if limits.is_over:
                break
            order = entry.sides if turn % 2 == 0 else entry.sides[::-1]  # nobody is always the first
            for side in order:
                contestant = contestants[side.name]
                side.seconds.append(_time(contestant, calls[side.name], device) * contestant.scale)
    return entry


def check_work(case: Case, entry: Entry) -> None:
    """Refuse sides whose losses differ: one of them then did other work, or less of it."""
    mine = next((side for side in entry.sides if side.name == OURS), None)
    for side in entry.sides:
        if mine is None or side.losses is None or mine.losses is None:
            continue
        same = mine.losses[1] if case.is_exact else mine.losses[0] - mine.losses[1]
        other = side.losses[1] if case.is_exact else side.losses[0] - side.losses[1]
        if same <= 0 or not abs(other - same) <= case.tolerance * same:
            what = "found" if case.is_exact else "lowered the loss by"
            raise WorkDiffers(
                f"{case.name} on {entry.device} in {entry.precision}: {side.name} {what} {other:.4g} and {OURS} "
                f"{same:.4g}, and they must be positive and within {100 * case.tolerance:.0f} % of each other."
            )


def _begin_entry(case: Case, setting: Setting, turns: int) -> Entry:
    return Entry(
        case=case.name,
        device=setting.device,
        precision=setting.precision,
        size=dict(setting.size),
        turns=turns,
        machine=results.machine(setting.device),
        versions=results.versions(*PACKAGES),
        code=read_code_version().stamp,
        date=datetime.now(UTC).date().isoformat(),
        load=os.getloadavg()[0],
        sides=[],
    )


def _check_side(
    name: str, make: Callable[[], Contestant], case: Case, setting: Setting
) -> tuple[SideTimes, Contestant, float]:
    """Build a side and let it work as often as the losses are compared after; return how long its last call took."""
    torch.manual_seed(0)  # what dropout draws is the same in each run, so that losses are
    before = _reset_memory(setting.device)
    contestant, took = make(), list[float]()
    losses = [] if contestant.loss is None else [contestant.loss()]
    for _ in range(case.checked):
        took.append(_time(contestant, 1, setting.device))
    if contestant.loss is not None:
        losses.append(contestant.loss())
    memory = None if before is None else torch.cuda.max_memory_allocated() - before
    side = SideTimes(name, setting.precision, [], losses or None, memory, contestant.scale, took[0])
    contestant.run()  # the last of those above may have recorded a CUDA graph
    return side, contestant, _time(contestant, 1, setting.device)


def _reset_memory(device: str) -> int | None:
    if device != "cuda":
        return None
    gc.collect()
    torch.cuda.empty_cache()  # blocks are sized by the memory that is free
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def _choose_calls(seconds: float) -> int:
    return max(1, min(MOST_CALLS, round(TURN_SECONDS / max(seconds, 1e-6))))


def _time(contestant: Contestant, calls: int, device: str) -> float:
    """Return the mean seconds of a call, with all that the device was given to do."""
    _synchronize(device)
    begun = time.perf_counter()
    for _ in range(calls):
        contestant.run()
    _synchronize(device)
    return (time.perf_counter() - begun) / calls


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
