"""For Python programs and notebooks: train a model, and load a run. The command line uses the same functions."""

from discreet.api.experiment_jobs import prepare_job, prepare_terms, reopen_run
from discreet.api.run_audit import audit_run
from discreet.api.run_result import Run, load, new_run_path, run_of_outcome, write_page
from discreet.api.training_session import SessionKeywords, session, train

__all__ = [
    "Run",
    "SessionKeywords",
    "audit_run",
    "load",
    "new_run_path",
    "prepare_job",
    "prepare_terms",
    "reopen_run",
    "run_of_outcome",
    "session",
    "train",
    "write_page",
]
