"""Audit a run or an experiment from Python; the command line uses the same function."""

from __future__ import annotations

from pathlib import Path

from discreet.api.experiment_jobs import prepare_job
from discreet.api.run_result import Run, write_page
from discreet.audit.audit_record import AuditRecord, add_audit, stored_audits
from discreet.audit.audit_setup import AuditSetup, setup_from_job, setup_from_run
from discreet.audit.auditor import AuditOptions, Estimator, Watch, audit_experiment
from discreet.experiment.configuration import experiment_file
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.part import Flag, check_value
from discreet.paths import PathLike, to_path
from discreet.privacy.release import NamedView, View, parse_view
from discreet.trust import Trust
from discreet.trust_store import trust_remembered

REMEDY = "Read it; then pass trust=True."


def audit_run(
    run: Run | PathLike,
    *,
    canaries: int | None = None,
    estimator: Estimator = "gaussian",
    confidence: float = 0.95,
    runs: int | None = None,
    unit: str | None = None,
    against: View | None = None,
    seed: int | None = None,
    trust: bool = False,
) -> AuditRecord:
    """Attack a run or an experiment, and measure from below how much it reveals.

    The same algorithm is trained on stand-in data: every row is blank but for canaries, each present or absent by a
    fair coin. No private data is read and nothing is spent. A run keeps the result in its directory.

    Args:
        run: A run, its directory, or an experiment's file.
        canaries: Number of canaries in a training. None for as many as fit, up to 1,000.
        estimator: "gaussian", which measures most; "one-run" or "one-run-fdp", which assume less; or "repeated".
        confidence: The probability that the lower bound holds.
        runs: Number of trainings. None for one, or as many as bring 200 canaries.
        unit: "example", "client" or "person". None for the promised unit.
        against: "server", "client" (or "clients") or "public". None for the promised observer.
        seed: Makes the audit repeatable.
        trust: Whether Python files that the experiment names may run.

    Returns:
        The lower bound beside the certified ε. A lower bound proves no safety: another attack may find more.

    Raises:
        InvalidInput: There is no such run or guarantee, or the file of the run's earlier audits is damaged.
        Unsupported: No attack of this kind fits the algorithm.

    Example:
        >>> discreet.audit_run("runs/first").lower_bound
        1.31
    """
    path = run.directory if isinstance(run, Run) else to_path(run)
    check_value("trust", Flag, trust)
    check_value("against", NamedView | None, against)
    options = AuditOptions(canaries, estimator, confidence, runs, unit, parse_view(against), seed)
    allowed = Trust.all_code() if trust else trust_remembered(REMEDY)
    if path.is_dir():
        return audit_directory(path, options, allowed)
    source = experiment_file.load_experiment(path, (), None, allowed)
    return audit_experiment(setup_from_source(source), options)


def audit_directory(
    directory: Path, options: AuditOptions, trust: Trust, watch: Watch = lambda done, total: None
) -> AuditRecord:
    """Audit a run by its directory alone, keep the result there, and write its page again."""
    stored_audits(directory)  # refuses a damaged file before it trains
    record = audit_experiment(setup_from_run(RunRecord.open(directory), trust), options, watch)
    add_audit(directory, record)
    write_page(directory)
    return record


def setup_from_source(source: Source) -> AuditSetup:
    """Return the setup of an experiment's file. Its data is loaded for the public client sizes alone."""
    return setup_from_job(prepare_job(source))
