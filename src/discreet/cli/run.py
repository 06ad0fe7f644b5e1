"""`discreet run`: trains an experiment, shows how it goes, and ends with the guarantee card."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer
from rich.console import RenderableType

from discreet.cli.options import AcceptDataRanges, DataDir
from discreet.cli.output import Json, emit, stderr_console
from discreet.cli.progress_bar import show_preparation
from discreet.errors import InvalidInput
from discreet.part import to_plain
from discreet.privacy.wording import compact

if TYPE_CHECKING:
    from discreet.experiment.loop.job import Job
    from discreet.experiment.loop.outcome import Outcome
    from discreet.experiment.loop.training_loop import Watch

EPILOG = """\b
Examples:
  discreet run
  discreet run experiment.toml --out runs/first
  discreet run experiment.toml --set privacy.epsilon=1 --ledger visits.jsonl
  discreet run --resume runs/first

\b
Exit codes: 0 trained; 2 wrong input, or --resume with other data or code than
the run was started with, nothing written; 3 refused by the budget (the last
model is kept); 1 interrupted, or anything else. Ctrl-C or SIGTERM stops after
the round, with all saved; a second one stops at once.
"""

File: TypeAlias = Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)]
Set: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Override any field: privacy.epsilon=1.")
]


def run(
    file: File = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where results go; default: under runs/.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The data's ledger; default: one for this run only.")
    ] = None,
    settings: Set = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with a run that was stopped.")] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"] | None, typer.Option(metavar="WHERE", help="auto (default), cpu or cuda.")
    ] = None,
    data_dir: DataDir = None,
    key_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where a run's secret key lies until it ends.")
    ] = None,
    accept_data_ranges: AcceptDataRanges = False,
    as_json: Json = False,
) -> None:
    """Train the experiment in FILE, or the built-in one on digits.

    Writes a run directory with the model, the guarantee and report.html. The noise is computed from the promise in
    FILE; `discreet init` writes one to start from.
    """
    if resume is not None and (file or out or ledger or settings or device or accept_data_ranges):
        raise InvalidInput("--resume goes on as the run was started: it takes no FILE and no other option.")
    overrides = (*(settings or ()), *([f"device={device}"] if device else ()))
    if resume is not None:
        trained = resume_run(resume, key_dir, data_dir, as_json)
    else:
        trained = start_run(
            file, overrides, out, ledger, key_dir, data_dir, as_json, accept_data_ranges=accept_data_ranges
        )
    print_result(trained, as_json)


def start_run(
    file: Path | None,
    overrides: tuple[str, ...],
    out: Path | None,
    ledger: Path | None,
    key_dir: Path | None,
    data_dir: Path | None,
    quiet: bool,
    *,
    accept_data_ranges: bool = False,
) -> "Outcome":
    """A new run, from a file to its end."""
    from discreet.experiment import api
    from discreet.experiment.configuration import experiment_file
    from discreet.experiment.loop.training_loop import start
    from discreet.experiment.promise import data_ranges, person_bound
    from discreet.experiment.run_directory.run_record import check_path_is_free
    from discreet.planning.advice import advice

    source = experiment_file.load_experiment(file, overrides, data_dir)
    where = out if out is not None else api.new_run_path(file.stem if file else "digits")
    check_path_is_free(where)
    with show_preparation(source, quiet=quiet) as ready:
        job = api.prepare_job(ready, accept_data_ranges=accept_data_ranges)
    data_ranges.check_accepted(job.task.ranges_from_data, accepted=accept_data_ranges)
    if not quiet:
        for sentence in [
            *range_warnings(job.task.ranges_from_data),
            *person_bound.owner_notices(job.task),
            *advice(job),
        ]:
            stderr_console().print(sentence)
    with round_progress(job, quiet=quiet) as watch:
        return start(job, where, ledger, key_dir, watch)


def resume_run(directory: Path, key_dir: Path | None, data_dir: Path | None, quiet: bool) -> "Outcome":
    from discreet.experiment import api
    from discreet.experiment.loop.training_loop import resume

    job, record = api.reopen_run(directory, key_dir, data_dir)
    if not quiet:
        for sentence in range_warnings(job.task.ranges_from_data):
            stderr_console().print(sentence)
    with round_progress(job, quiet=quiet) as watch:
        return resume(job, record, key_dir, watch)


def range_warnings(ranges_from_data: bool) -> Iterator[str]:
    """What stands next to the promise, at the start of a run and at its end."""
    from discreet.experiment.promise import data_ranges

    yield from (f"Warning: {sentence}" for sentence in data_ranges.warnings(ranges_from_data))


def round_progress(job: "Job", *, quiet: bool) -> "AbstractContextManager[Watch]":
    """A live bar in a terminal, a few lines in a log, and nothing for a program; all on stderr."""
    from discreet.experiment.loop import progress

    if quiet:
        return progress.no_progress()
    console = stderr_console()
    budget = job.privacy.largest_epsilon if job.privacy else None
    if console.is_terminal:
        return progress.progress_bar(job.rounds, 0, budget, console)
    return progress.progress_lines(job.rounds, budget, lambda line: print(line, file=sys.stderr, flush=True))  # noqa: T201


def print_result(ended: "Outcome", as_json: bool) -> None:
    """The card and where the results lie; the exit code says how the run ended."""
    from discreet.experiment import api

    page = api.write_page(ended.record.path)
    emit(lambda: result_data(ended, page), lambda: _page(ended, page), as_json=as_json)
    if ended.stopped:
        raise typer.Exit(ended.exit_code)


def result_data(ended: "Outcome", page: Path) -> dict[str, Any]:
    return {
        "run": str(ended.record.path),
        **ended.summary(),
        "guarantees": [to_plain(each) for each in ended.guarantees],
        "data_ranges": ended.record.identity.data_ranges,
        "report": str(page),
    }


def _page(ended: "Outcome", page: Path) -> Iterator[RenderableType]:
    from discreet.experiment.promise import run_guarantees

    yield run_guarantees.card_text(list(ended.guarantees))
    yield ""
    for sentence in range_warnings(ended.record.identity.data_ranges):
        yield sentence
        yield ""
    yield from describe_results(ended, page)
    if ended.stopped:
        yield ""
        yield ended.stopped


def describe_results(ended: "Outcome", page: Path) -> Iterator[RenderableType]:
    """How good the model is, and where everything lies."""
    metrics = ", ".join(describe_metrics(ended.metrics)) or "nothing to measure"
    yield f"After {ended.completed} rounds, on test data: {metrics}"
    yield f"Results lie in {ended.record.path}"
    yield f"  to look at:   {page.name}"
    yield "  to use:       model.safetensors, or discreet.load() in Python"
    identity = ended.record.identity
    secret = identity.data_ranges or identity.seeded  # bounds of the data, or the seed, stand in resolved.toml
    yield f"  to hand on:   guarantee.txt{'' if secret else ', resolved.toml'}"


def describe_metrics(metrics: dict[str, Any]) -> Iterator[str]:
    """Each metric by name; a squared error with what a constant achieves beside it."""
    said = {name: f"{name} {compact(float(value), 4)}" for name, value in metrics.items()}
    if "mse" in said and (constant := said.pop("constant_mse", None)):
        said["mse"] += f" ({constant}: by always predicting the training mean)"
    yield from said.values()
