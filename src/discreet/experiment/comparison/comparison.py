"""Run a comparison: all cells are planned before anything is run, and each result is kept."""

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from discreet.algorithms.noise_to_signal import noise_multiplier
from discreet.code_version import read_code_version
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task
from discreet.data.tasks.task_loading import find_source
from discreet.experiment.comparison.cells import CellRun, data_key, name_errors
from discreet.experiment.comparison.choice import missing_validation
from discreet.experiment.comparison.comparison_results import Result, ResultsFile
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder, run_guarantees
from discreet.experiment.loop import training_loop as loop
from discreet.experiment.loop.interrupt import catch_interrupts
from discreet.experiment.promise import data_ranges
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.part import to_plain
from discreet.paths import OnProgress
from discreet.privacy.wording import unit_name
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey


class Observer(Protocol):
    """Is told about every round, and about every run that has ended."""

    def round(self, run: CellRun, line: RoundRecord) -> None: ...

    def finish_run(self, run: CellRun, result: Result) -> None: ...


def plan_comparison(
    asked: Sequence[CellRun], data: "DataCache", watch: OnProgress, *, is_choosing: bool = False
) -> None:
    """Build and certify the first run of every cell, so that errors show before anything is run.

    Args:
        is_choosing: Whether settings are to be chosen, for which every run needs validation data.
    """
    firsts = list({run.cell.label: run for run in reversed(asked)}.values())[::-1]
    for number, run in enumerate(firsts):
        watch("planning", number, len(firsts))
        with name_errors(run.cell.label):
            ready = data.build_job(run, watch)
            if is_choosing and ready.validation_data is None:
                raise missing_validation(ready.task.name)
            data_ranges.check_accepted(ready.task.ranges_from_data, accepted=ready.accept_data_ranges)
            # The result is cached, so certifying at the end is free.
            run_guarantees.certify_run(ready.terms, ready.rounds, None, shared=False)


def run_comparison(asked: Sequence[CellRun], results: ResultsFile, data: "DataCache", observer: Observer) -> bool:
    """Run each cell and keep its result. Return whether all runs were completed, without an interrupt."""
    with results.lock(), catch_interrupts() as stop:
        for run in asked:
            if stop.is_requested:
                return False
            with name_errors(run.label):
                result = _run_cell(run, data, lambda line, run=run: observer.round(run, line))  # type: ignore[misc]
            if result is None:
                return False
            results.append(result)
            observer.finish_run(run, result)
    return True


@dataclass
class DataCache:
    """Keeps the data that was read last: runs that share data follow each other."""

    accept_data_ranges: bool = False
    _held: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def build_job(self, run: CellRun, watch: OnProgress | None = None) -> Job:
        """Build the job of a run, as `discreet run` does."""
        source, key = run.source, RunKey.from_seed(run.seed)
        if watch is not None:
            source = replace(source, paths=replace(source.paths, on_progress=watch))
        ready = job_builder.build_job(source, key, self.load_task(source, key))
        return replace(ready, accept_data_ranges=self.accept_data_ranges)

    def load_task(self, source: Source, key: RunKey) -> Task:
        """Load the task, reading only data that the last run has not read."""
        record: Any = source.experiment.task
        person = None if source.experiment.privacy is None else source.experiment.privacy.person
        whole = f"{data_key(source)} {to_plain(record)} {person} {key.secret.hex()}"
        task: Task = self._cached_value("task", whole, lambda: self._load_task(record, source, key))
        return task

    def _load_task(self, record: Any, source: Source, key: RunKey) -> Task:
        drawn = key.generator(Purpose.TASK)
        if not hasattr(record, "examples"):
            return source.experiment.load_task(drawn, source.paths)
        examples: Examples = self._cached_value("examples", data_key(source), lambda: record.examples(source.paths))
        data_set = find_source(record)
        return examples.build_task(data_set.clients, data_set.partition, drawn, data_set.validation_fraction)

    def _cached_value(self, what: str, key: str, make: Callable[[], Any]) -> Any:
        if what not in self._held or self._held[what][0] != key:
            self._held.pop(what, None)  # so that two of them never need memory at once
            self._held[what] = (key, make())
        return self._held[what][1]


def _run_cell(run: CellRun, data: DataCache, watch: loop.Watch) -> Result | None:
    """Run a cell in a temporary folder and return its result. None if it was interrupted."""
    ready = data.build_job(run)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
        ended = loop.start(ready, Path(folder) / "run", None, Path(folder) / "keys", watch)
        lines = ended.record.read_rounds()
    if ended.stopped and not ended.is_refused:
        return None
    first = ended.guarantees[0] if ended.guarantees else None
    return {
        "key": run.key,
        "name": run.cell.name,
        "swept": run.cell.swept,
        "seed": run.seed,
        "rounds": ended.completed,
        "clients": ready.population.clients,
        "metrics": ended.metrics,
        "validation": ended.validation,
        "epsilon": None if first is None else first.epsilon if math.isfinite(first.epsilon) else "inf",
        "promised_epsilon": None if ready.privacy is None else ready.privacy.largest_epsilon,
        "delta": None if first is None else first.delta,
        "unit": None if first is None else unit_name(first.unit),
        "against": None if first is None else first.view,
        "on_word_of": [] if first is None else list(first.on_word_of),
        "noise_multiplier": noise_multiplier(ready.algorithm),
        "seconds": round(time.perf_counter() - began, 3),
        "device": ready.device.type,
        "code": read_code_version().stamp,
        "data_ranges": ready.task.ranges_from_data,
        "stopped": ended.stopped,
        "training": lines[-1].get("training") if lines else None,
        "diagnostics": _average_diagnostics(lines),
        "history": [{"round": line["round"], **line["evaluation"]} for line in lines if "evaluation" in line],
    }


def _average_diagnostics(lines: list[RoundRecord]) -> dict[str, float]:
    """Average the diagnostics of the rounds, over those that have a number."""
    diagnostics = {
        "norm": [line.get("norms", {}).get("mean") for line in lines],
        "kept": [line.get("kept", {}).get("mean") for line in lines],
        "deviation": [line.get("kept", {}).get("deviation") for line in lines],
        "clipped": [line["clipped"] for line in lines if "kept" in line],
        "signal_to_noise": [line.get("signal_to_noise") for line in lines],
    }
    numbers = {name: [value for value in values if isinstance(value, float)] for name, values in diagnostics.items()}
    return {name: math.fsum(values) / len(values) for name, values in numbers.items() if values}
