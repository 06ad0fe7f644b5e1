"""The job of an experiment's file, and of a stopped run that goes on."""

from dataclasses import replace
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.configuration.experiment_file import Experiment, Source
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder
from discreet.experiment.run_directory import run_keys
from discreet.experiment.run_directory.resume_check import check_version
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.experiment.terms import Terms
from discreet.paths import Paths
from discreet.randomness.streams import RunKey
from discreet.trust import Trust


def prepare_job(source: Source, *, accept_data_ranges: bool = False) -> Job:
    """Build the job of an experiment, or say what is wrong with it; nothing is written."""
    ready = job_builder.build_job(source, choose_key(source.experiment.seed))
    return replace(ready, accept_data_ranges=accept_data_ranges)


def prepare_terms(source: Source) -> Terms:
    """Return the terms of an experiment without running its own model, loss and metric; nothing is written."""
    return job_builder.build_terms(source, choose_key(source.experiment.seed))


def reopen_run(
    directory: Path, key_dir: Path | None, data_dir: Path | None = None, trust: Trust | None = None
) -> tuple[Job, RunRecord]:
    """Open a stopped run of an experiment's file, and build its job again.

    Args:
        directory: The run directory.
        key_dir: The folder of the run's key. None for that in the user's state folder.
        data_dir: The folder of downloaded data sets.
        trust: Which code that the experiment names may run. None for nothing.
    """
    record = RunRecord.open(directory)
    if record.identity.folder is None:
        raise InvalidInput(f"{directory} was made from Python.", fix="Resume it with discreet.train(..., resume=...).")
    _refuse_finished(record, key_dir)
    check_version(record)
    experiment = read_experiment(record)
    key = run_keys.load_key(record.identity.id, key_dir) if experiment.seed is None else choose_key(experiment.seed)
    paths = Paths.default(Path(record.identity.folder), data_dir, trust)
    source = Source(experiment, record.read_text("experiment.toml"), paths)
    ready = job_builder.build_job(source, key)
    return replace(ready, accept_data_ranges=has_accepted_ranges(record)), record


def open_for_resume(directory: Path, key_dir: Path | None) -> RunRecord:
    """Open a stopped run, or refuse one that is finished or that another version started."""
    record = RunRecord.open(directory)
    _refuse_finished(record, key_dir)
    check_version(record)
    return record


def _refuse_finished(record: RunRecord, key_dir: Path | None) -> None:
    if record.is_finished():
        run_keys.delete_key(record.identity.id, key_dir)
        raise InvalidInput(f"The run in {record.path} is finished.", fix="Start a new run to train longer.")


def has_accepted_ranges(record: RunRecord | None) -> bool:
    """Whether the user accepted ranges taken from the data when the run was started."""
    return record is not None and record.identity.data_ranges


def read_experiment(record: RunRecord) -> Experiment:
    """Read the experiment of a run from its directory, with all defaults filled in."""
    return toml_document.build_record(
        Experiment, toml_document.parse_toml(record.read_text("resolved.toml"), "resolved.toml")
    )


def choose_key(seed: int | None) -> RunKey:
    """Return the key that follows from a seed, or a fresh one without a seed."""
    return RunKey.generate() if seed is None else RunKey.from_seed(seed)
