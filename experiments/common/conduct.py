"""Makes the runs that a page still lacks, one after the other, and keeps each: the same command goes on."""

import math
import time
from pathlib import Path

from discreet.cli.compare import watching
from discreet.experiment import cells, compare
from discreet.experiment.cells import Cell
from discreet.experiment.results import Results


def conduct(found: list[Cell], seeds: int, home: Path, out: Path | None = None, limit_s: float = math.inf) -> bool:
    """Make every run that is neither in `home` nor in `out`, and keep it in `out`; whether all are there now.

    No run is started after `limit_s` seconds.
    """
    began, kept = time.perf_counter(), Results(out or home)
    there = Results(home).found() | kept.found()
    asked = {run.key: run for run in cells.runs(found, seeds)}
    missing = [run for key, run in asked.items() if key not in there]
    if not missing:
        return True
    data = compare.Data()
    compare.plan(missing, data, lambda what, done, total: None)
    with watching(missing, len(asked), quiet=False) as observer:
        for run in missing:
            if time.perf_counter() - began > limit_s or not compare.conduct([run], kept, data, observer):
                return False
    return True
