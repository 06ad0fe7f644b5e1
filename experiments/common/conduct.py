"""Makes the runs that a page still lacks, one after the other, and keeps each: the same command goes on."""

import argparse
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from discreet.cli.compare import run_progress
from discreet.experiment.comparison import cells, comparison
from discreet.experiment.comparison.cells import Cell
from discreet.experiment.comparison.comparison_results import Result, ResultsFile


def parser(about: str | None, only: Iterable[str], page: str) -> argparse.ArgumentParser:
    """What every reproduction asks for; `only` are the parts that can be made by themselves."""
    found = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--only", choices=list(only), help="default: all of them")
    found.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    found.add_argument("--data-dir", type=Path)
    found.add_argument("--out", type=Path, metavar="DIR", help="where new results go; default: beside the script")
    found.add_argument("--limit-s", type=float, default=math.inf, metavar="S", help="start no run after S seconds")
    found.add_argument("--page", action="store_true", help=f"write docs/results/{page} from what is there")
    return found


@dataclass(frozen=True)
class Conductor:
    """Makes runs as they are asked for on the command line, until the time that was given is over."""

    given: argparse.Namespace
    home: Path
    began: float = field(default_factory=time.perf_counter)

    @property
    def settings(self) -> tuple[str, ...]:
        return (f"device={self.given.device}",)

    def all_results(self) -> list[Result]:
        """All runs that are made, here or where new ones go."""
        return list(
            (ResultsFile(self.home).read_by_key() | ResultsFile(self.given.out or self.home).read_by_key()).values()
        )

    def run_all(self, found: list[Cell], seeds: int) -> bool:
        """Whether all of these are there now."""
        left = self.given.limit_s - (time.perf_counter() - self.began)
        return conduct(found, seeds, self.home, self.given.out, left)


def completion_message(done: bool) -> str:
    return "All runs are made." if done else "Some runs are still to be made: the same command goes on."


def conduct(found: list[Cell], seeds: int, home: Path, out: Path | None = None, limit_s: float = math.inf) -> bool:
    """Make every run that is neither in `home` nor in `out`, and keep it in `out`; whether all are there now.

    No run is started after `limit_s` seconds.
    """
    began, kept = time.perf_counter(), ResultsFile(out or home)
    there = ResultsFile(home).read_by_key() | kept.read_by_key()
    asked = {run.key: run for run in cells.list_runs(found, seeds)}
    missing = [run for key, run in asked.items() if key not in there]
    if not missing:
        return True
    data = comparison.DataCache()
    comparison.plan_comparison(missing, data, lambda what, done, total: None)
    with run_progress(missing, len(asked), quiet=False) as observer:
        for run in missing:
            if time.perf_counter() - began > limit_s or not comparison.run_comparison([run], kept, data, observer):
                return False
    return True
