"""Make the runs that a page still lacks, one after the other, and store each: the same command continues."""

import argparse
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from discreet.cli.comparison_progress import run_progress
from discreet.experiment.comparison import cells, comparison
from discreet.experiment.comparison.cells import Cell
from discreet.experiment.comparison.comparison_results import Result, ResultsFile


def parser(about: str | None, only: Iterable[str], page: str) -> argparse.ArgumentParser:
    """Return the options of every reproduction; `only` lists the parts that can be run by themselves."""
    command = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--only", choices=list(only), help="default: all of them")
    command.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    command.add_argument("--data-dir", type=Path)
    command.add_argument("--out", type=Path, metavar="DIR", help="where new results go; default: beside the script")
    command.add_argument("--limit-s", type=float, default=math.inf, metavar="S", help="start no run after S seconds")
    command.add_argument("--page", action="store_true", help=f"write docs/results/{page} from what is there")
    return command


@dataclass(frozen=True)
class Conductor:
    """Makes the runs that the command line asks for, until its time limit."""

    arguments: argparse.Namespace
    home: Path
    began: float = field(default_factory=time.perf_counter)

    @property
    def settings(self) -> tuple[str, ...]:
        return (f"device={self.arguments.device}",)

    def all_results(self) -> list[Result]:
        """Return all results, of the home folder and of the folder for new ones."""
        return list(
            (ResultsFile(self.home).read_by_key() | ResultsFile(self.arguments.out or self.home).read_by_key()).values()
        )

    def run_all(self, wanted: list[Cell], seeds: int) -> bool:
        """Run these cells as far as time allows, and return whether all of them have a result now."""
        left = self.arguments.limit_s - (time.perf_counter() - self.began)
        return conduct(wanted, seeds, self.home, self.arguments.out, left)


def completion_message(done: bool) -> str:
    return "All runs are made." if done else "Some runs are still to be made: the same command goes on."


def conduct(wanted: list[Cell], seeds: int, home: Path, out: Path | None = None, limit_s: float = math.inf) -> bool:
    """Make every run that is neither in `home` nor in `out`, and store it in `out`.

    No run is started after `limit_s` seconds. Return whether all of them have a result now.
    """
    began, kept = time.perf_counter(), ResultsFile(out or home)
    there = ResultsFile(home).read_by_key() | kept.read_by_key()
    runs = {run.key: run for run in cells.list_runs(wanted, seeds)}
    missing = [run for key, run in runs.items() if key not in there]
    if not missing:
        return True
    data = comparison.DataCache()
    comparison.plan_comparison(missing, data, lambda what, done, total: None)
    with run_progress(missing, len(runs), quiet=False) as observer:
        for run in missing:
            if time.perf_counter() - began > limit_s or not comparison.run_comparison([run], kept, data, observer):
                return False
    return True
