"""Makes the runs that the pages on PFL and on tuned settings lack, with many processes on one GPU.

python -m experiments.missing.reproduce --list                                  # how many runs each group lacks
python -m experiments.missing.reproduce pfl-ends fu --workers 6 --memory-gb 6 --device cuda --data-dir DATA --out FILE
python -m experiments.missing.reproduce --merge FILE    # the results of FILE go where the pages read them
"""

import argparse
import json
import math
import tempfile
from collections import deque
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from discreet.engines.engine_table import Embedded
from discreet.experiment.comparison import comparison
from discreet.experiment.comparison.cells import CellRun
from discreet.experiment.comparison.comparison_results import ResultsFile
from discreet.experiment.run_directory.run_files import RoundRecord
from experiments.common.workers import make_runs
from experiments.missing.groups import GROUPS, Job, PflJob, Result, TunedJob, list_missing, read_families
from experiments.pfl.cells import RESULTS
from experiments.tuned import families
from experiments.tuned.families import identity, run_identity
from experiments.tuned.reproduce import PHASES
from experiments.tuned.validation import ValidationData


def main(arguments: list[str] | None = None) -> None:
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; default: all")
    command.add_argument("--workers", type=int, default=1, metavar="N", help="processes that share the GPU")
    command.add_argument(
        "--memory-gb", type=float, metavar="GB", help="for the blocks of each process; default: half of what is free"
    )
    command.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    command.add_argument("--data-dir", type=Path)
    command.add_argument("--out", type=Path, metavar="FILE", help="where results go, a line each")
    command.add_argument("--limit-s", type=float, default=math.inf, metavar="S", help="start no run after S seconds")
    command.add_argument("--list", action="store_true", help="say how many runs are missing, and make none")
    command.add_argument("--merge", type=Path, metavar="FILE", help="put the results of FILE where the pages read them")
    options = command.parse_args(arguments)
    names = options.groups or list(GROUPS)
    if strange := [name for name in names if name not in GROUPS]:
        command.error(f"GROUP must be one of {', '.join(GROUPS)}, and got {strange[0]!r}")
    if options.merge:
        merge(read_lines(options.merge))
    elif options.list:
        for name in names:
            print(f"{name}: {len(list(list_missing([name], lambda study, phase: [])))}")
    elif not options.out:
        command.error("--out must say where results go")
    else:
        run_missing(names, options)


def run_missing(names: list[str], options: argparse.Namespace) -> None:
    """Make the missing runs of the groups; what a choice on validation data adds is made before the other groups."""
    lines = read_lines(options.out)

    def read_made(study: str, phase: str) -> list[Result]:
        return [line["result"] for line in lines if (line["study"], line["phase"]) == (study, phase)]

    jobs = deque(list_missing(names, read_made))
    asked = set(jobs)
    setup = RunSetup(options.device, options.data_dir, options.workers, options.memory_gb)
    perform = partial(make_run, setup=setup)
    for job, result in make_runs(jobs, perform, options.workers, options.limit_s):
        line = {"study": job.study, "phase": job.phase, "result": result}
        lines.append(line)
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{job}: {_accuracy(result):.2f} % in {result['seconds']} s, {len(jobs)} wait", flush=True)
        if isinstance(job, TunedJob) and job.phase == PHASES[0]:
            added = [each for each in list_missing(names, read_made) if each not in asked]
            asked |= set(added)
            jobs.extendleft(reversed(added))


def _accuracy(result: Result) -> float:
    return float(result["accuracy"] if "accuracy" in result else 100 * result["metrics"]["accuracy"])


@dataclass(frozen=True)
class RunSetup:
    """How runs are made; `memory_gb` is for the blocks of each of `workers` processes."""

    device: str
    data_dir: Path | None
    workers: int
    memory_gb: float | None


def make_run(job: Job, setup: RunSetup) -> Result:
    """Make one run, in a process of its own."""
    torch.set_float32_matmul_precision("highest")
    torch.set_num_threads(1)
    if isinstance(job, PflJob):
        from experiments.pfl.reproduce import run_cell

        engine = Embedded(memory_gb=setup.memory_gb)
        result = run_cell(job.cell, job.seed, setup.device, setup.data_dir, engine)
    else:
        result = _tuned_result(_runs(job.study, setup)[job.identity], _cached_data(job.phase, job.study))
    return result | {"at_once": setup.workers}


@cache
def _runs(study: str, setup: RunSetup) -> dict[tuple[Any, ...], CellRun]:
    """Every cell of a study with every seed, by what tells its results from others."""
    settings: tuple[str, ...] = (f"device={setup.device}",)
    if setup.memory_gb is not None:
        settings += (f'engine={{kind="embedded", memory_gb={setup.memory_gb}}}',)
    every = [run for family in read_families(study, settings, setup.data_dir) for run in families.all_runs(family)]
    return {run_identity(run): run for run in every}


@cache
def _cached_data(phase: str, data: str) -> comparison.DataCache:
    return ValidationData() if phase == PHASES[0] else comparison.DataCache()


class _ResultKeeper:
    """Keeps the result of the run that has ended."""

    result: Result

    def round(self, run: CellRun, line: RoundRecord) -> None:
        """Rounds are not printed."""

    def finish_run(self, run: CellRun, result: Result) -> None:
        self.result = result


def _tuned_result(run: CellRun, data: comparison.DataCache) -> Result:
    kept = _ResultKeeper()
    with tempfile.TemporaryDirectory() as folder:
        comparison.run_comparison([run], ResultsFile(Path(folder)), data, kept)
    return kept.result


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file of results; none if there is no such file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def merge(lines: list[dict[str, Any]]) -> None:
    """Append results that are not there yet."""
    pfl = [PflJob.from_result(json.loads(line)) for line in RESULTS.read_text().splitlines()]
    added = 0
    for line in lines:
        study, phase, result = line["study"], line["phase"], line["result"]
        if study == "pfl":
            if (job := PflJob.from_result(result)) in pfl:
                continue
            pfl.append(job)
            with RESULTS.open("a") as file:
                file.write(json.dumps(result) + "\n")
        else:
            if identity(result) in {identity(each) for each in families.results(study, phase)}:
                continue
            kept = ResultsFile(families.HERE / "results" / study / phase)
            with kept.lock():
                kept.append(result)
        added += 1
    print(f"{added} of {len(lines)} results were added")


if __name__ == "__main__":
    main()
