"""`discreet run`: train an experiment, show its progress, and print the guarantee card."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType

from discreet.cli.options import AcceptDataRanges, DataDir, Device, OutputDir, Overrides
from discreet.cli.output import Json, emit, print_note, stderr_console
from discreet.cli.profile_output import profile_json, profile_of_run, profile_page
from discreet.cli.progress_bar import show_preparation
from discreet.cli.trust_options import TrustOption, choose_trust, is_interactive
from discreet.errors import InvalidInput
from discreet.experiment.run_directory.run_files import TABLE
from discreet.part import to_plain
from discreet.privacy.wording import compact

if TYPE_CHECKING:
    from discreet.experiment.job import Job
    from discreet.experiment.loop.outcome import Outcome
    from discreet.experiment.loop.training_loop import Watch
    from discreet.round_clock import Clock
    from discreet.trust import Trust

EPILOG = """\b
Examples:
  discreet run
  discreet run experiment.toml --out runs/first
  discreet run experiment.toml --set privacy.epsilon=1 --ledger visits.jsonl
  discreet run experiment.toml --track csv --track tensorboard=runs/tb
  discreet run --profile
  discreet run --resume runs/first

\b
Exit codes: 0 trained; 2 wrong input, or --resume with data or code other than
those of the run, nothing written; 3 refused by the privacy budget (the last
model is kept); 1 interrupted, or anything else. Ctrl-C or SIGTERM stops after
the current round and saves everything; a second one stops at once.
"""

File: TypeAlias = Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)]


def run(
    file: File = None,
    out: OutputDir = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="PATH", show_default="a new one in the run directory", help="Ledger of the data."),
    ] = None,
    settings: Overrides = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Continue the stopped run in this folder.")] = None,
    device: Device = None,
    data_dir: DataDir = None,
    key_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the secret key of the run, until it ends.")
    ] = None,
    accept_data_ranges: AcceptDataRanges = False,
    as_far_as_it_goes: Annotated[
        bool,
        typer.Option(
            "--as-far-as-it-goes", help="Start though the ledger can't pay for all rounds; stop when it ends."
        ),
    ] = False,
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[=PLACE]",
            help="Also write the numbers of each round: csv, json_lines, tensorboard or mlflow.",
        ),
    ] = None,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Also measure where a round's time goes. Times may tell who took part: keep them to yourself.",
        ),
    ] = False,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Train the experiment in FILE, or the built-in one on digits.

    Writes a run directory with the model, the guarantee and report.html. The noise is computed from the promise in
    FILE. To get a FILE to start from, use `discreet init`.
    """
    options = (file, out, ledger, settings, device, accept_data_ranges, as_far_as_it_goes, track)
    if resume is not None and any(options):
        raise InvalidInput("--resume continues a run as it was started, and takes no FILE and no other option.")
    trusted = choose_trust(trust, resume or file)
    overrides = (*(settings or ()), *([f"device={device}"] if device else ()))
    if resume is not None:
        trained = resume_run(resume, key_dir, data_dir, trusted, as_json, profile=profile)
    else:
        trained = start_run(
            file,
            overrides,
            out,
            ledger,
            key_dir,
            data_dir,
            trusted,
            as_json,
            accept_data_ranges=accept_data_ranges,
            as_far_as_it_goes=as_far_as_it_goes,
            track=track or (),
            profile=profile,
        )
    print_result(trained, as_json)


def start_run(
    file: Path | None,
    overrides: tuple[str, ...],
    out: Path | None,
    ledger: Path | None,
    key_dir: Path | None,
    data_dir: Path | None,
    trust: "Trust",
    quiet: bool,
    *,
    accept_data_ranges: bool = False,
    as_far_as_it_goes: bool = False,
    track: Sequence[str] = (),
    profile: bool = False,
) -> "Outcome":
    """Prepare and train a new run, with progress on stderr.

    Args:
        file: The experiment file. None trains the built-in experiment.
        overrides: Fields to override, each as NAME=VALUE.
        out: The run directory. None makes a new one in runs/.
        ledger: The ledger of the data. None makes one for this run only.
        key_dir: Where the secret key of the run is kept until it ends.
        data_dir: The folder of the data sets.
        trust: Which code that the experiment names may run.
        quiet: Print neither warnings nor progress.
        accept_data_ranges: Train even if ranges were taken from the data.
        as_far_as_it_goes: Train even if the ledger can't pay for all rounds. In a terminal, the user is asked.
        track: Trackers besides those of the file, each as KIND or KIND=PLACE.
        profile: Measure where the time of a round goes.
    """
    from discreet import api
    from discreet.experiment.configuration import experiment_file
    from discreet.experiment.loop.training_loop import start
    from discreet.experiment.promise import data_ranges, person_bound
    from discreet.experiment.run_directory.run_record import check_path_is_free
    from discreet.experiment.tracking.any_tracker import parse_tracker
    from discreet.planning.advice import advice

    source = experiment_file.load_experiment(file, overrides, data_dir, trust)
    trackers = (*source.experiment.track, *map(parse_tracker, track))
    source = replace(source, experiment=replace(source.experiment, track=trackers))
    directory = out if out is not None else api.new_run_path(file.stem if file else "digits")
    check_path_is_free(directory)
    with show_preparation(source, quiet=quiet) as ready:
        job = api.prepare_job(ready, accept_data_ranges=accept_data_ranges)
    data_ranges.check_accepted(job.task.ranges_from_data, accepted=accept_data_ranges)
    if not quiet:
        for sentence in [
            *start_warnings(job),
            *person_bound.owner_notices(job.task.person, job.task.rows_left_out),
            *advice(job),
        ]:
            stderr_console().print(sentence)
    if ledger is not None and not as_far_as_it_goes and not quiet and is_interactive():
        as_far_as_it_goes = _ask_about_ledger(job, ledger)
    job = replace(job, as_far_as_it_goes=as_far_as_it_goes)
    with round_progress(job, ledger, quiet=quiet) as watch:
        return start(job, directory, ledger, key_dir, watch, clock=_clock(job, profile))


def _ask_about_ledger(job: "Job", path: Path) -> bool:
    """Ask whether to start a run that the ledger can pay for in part. False if it can pay for all rounds, or none."""
    from discreet.experiment.loop.training_loop import affordable_rounds
    from discreet.privacy.ledger import Ledger

    affordable = affordable_rounds(job, Ledger.open(path)) if path.exists() else job.rounds
    if affordable in (0, job.rounds):
        return False
    said = f"{path} can pay for {affordable:,} of {job.rounds:,} rounds. What they spend can't be undone."
    stderr_console().print(said)
    return typer.confirm("Train as far as it goes?", default=False, err=True)


def _clock(job: "Job", profile: bool) -> "Clock":
    from discreet.round_clock import NO_CLOCK, PhaseClock

    return PhaseClock.for_device(job.device.type) if profile else NO_CLOCK


def resume_run(
    directory: Path,
    key_dir: Path | None,
    data_dir: Path | None,
    trust: "Trust",
    quiet: bool,
    *,
    profile: bool = False,
) -> "Outcome":
    """Continue the run in `directory` as it was started, with progress on stderr."""
    from discreet import api
    from discreet.experiment.loop.training_loop import resume

    job, record = api.reopen_run(directory, key_dir, data_dir, trust)
    if not quiet:
        for sentence in start_warnings(job):
            stderr_console().print(sentence)
    shared = record.ledger_path if record.shares_ledger else None
    with round_progress(job, shared, quiet=quiet) as watch:
        return resume(job, record, key_dir, watch, clock=_clock(job, profile))


def start_warnings(job: "Job") -> Iterator[str]:
    """Warn about ranges taken from the data, and of what the job warns of, before rounds are played."""
    yield from range_warnings(job.task.ranges_from_data)
    yield from (f"Warning: {sentence}" for sentence in job.start_warnings())


def range_warnings(ranges_from_data: bool) -> Iterator[str]:
    """Warn about ranges taken from the data, at the start of a run and at its end."""
    from discreet.experiment.promise import data_ranges

    yield from (f"Warning: {sentence}" for sentence in data_ranges.warnings(ranges_from_data))


def round_progress(job: "Job", ledger: Path | None, *, quiet: bool) -> "AbstractContextManager[Watch]":
    """Show on stderr how the rounds proceed: a bar in a terminal, else a few lines; nothing if `quiet`.

    Args:
        job: What is trained.
        ledger: The ledger that the run shares with others, which may leave less than the promise does.
        quiet: Whether to show nothing.
    """
    from discreet.experiment.loop import progress

    if quiet:
        return progress.no_progress()
    console = stderr_console()
    left = progress.epsilon_left(job.privacy, ledger)
    if console.is_terminal:
        return progress.progress_bar(job.rounds, 0, left, console)
    return progress.progress_lines(job.rounds, left, print_note)


def print_result(ended: "Outcome", as_json: bool) -> None:
    """Write the report, and print the card and where the results are.

    Raises:
        typer.Exit: With the code of the reason, if the run ended early.
    """
    from discreet import api

    page = api.write_page(ended.record.path)
    profile = profile_of_run(ended.record.path)
    emit(
        lambda: result_data(ended, page) | profile_json(profile),
        lambda: chain(_page(ended, page), profile_page(profile)),
        as_json=as_json,
    )
    if ended.stopped:
        raise typer.Exit(ended.exit_code)


def result_data(ended: "Outcome", page: Path) -> dict[str, Any]:
    """Return the result of a run as plain data for JSON."""
    return {
        "run": str(ended.record.path),
        **ended.summary(),
        "guarantees": [to_plain(guarantee) for guarantee in ended.guarantees],
        "seeded": ended.record.identity.seeded,
        "data_ranges": ended.record.identity.data_ranges,
        "report": str(page),
    }


def _page(ended: "Outcome", page: Path) -> Iterator[RenderableType]:
    from discreet.experiment.loop import run_guarantees

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
    """Describe how good the model is, and where the results are."""
    metrics = ", ".join(describe_metrics(ended.metrics)) or "nothing to measure"
    yield f"After {ended.completed} rounds, on test data: {metrics}"
    if ended.validation:
        yield f"On validation data: {', '.join(describe_metrics(ended.validation))}"
    if ended.warning is not None:
        yield ended.warning
    yield f"Results are in {ended.record.path}"
    folder = quote(str(ended.record.path))
    yield f"  to look at:   {page.name}"
    yield f"  to decide by: discreet report {folder} --brief"
    is_table = (ended.record.path / TABLE).is_file()
    first = f"discreet predict {folder} NEW.csv" if is_table else "model.safetensors"
    yield f"  to use:       {first}, or discreet.load() in Python"
    identity = ended.record.identity
    is_secret = identity.data_ranges or identity.seeded  # resolved.toml holds bounds of the data, or the seed
    yield f"  to share:     guarantee.txt{'' if is_secret else ', resolved.toml'}"


def describe_metrics(metrics: dict[str, Any]) -> Iterator[str]:
    """Name each metric and its value; for a squared error, also the error of a constant prediction."""
    texts = {name: f"{name} {compact(float(value), 4)}" for name, value in metrics.items()}
    if "mse" in texts and (constant := texts.pop("constant_mse", None)):
        texts["mse"] += f" ({constant}: by always predicting the training mean)"
    yield from texts.values()
