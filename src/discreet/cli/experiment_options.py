"""The options of commands that read an experiment without training it: FILE, --set and --data-dir."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from discreet.cli.options import DataDir, Overrides
from discreet.cli.progress_bar import show_preparation
from discreet.extras import is_installed
from discreet.trust import Trust

if TYPE_CHECKING:
    from discreet.experiment.configuration.experiment_file import Source
    from discreet.experiment.terms import Terms

PLAN_REMEDY = "What it costs can't be known without it. Read it; then use discreet plan with --trust."


class PreparedPlan(NamedTuple):
    """An experiment before training: its source, its terms, and sentences that recommend another recipe."""

    source: "Source"
    terms: "Terms"
    advice: list[str]


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """Which experiment to read; without FILE, the built-in one on digits."""

    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)] = None
    settings: Overrides = None
    data_dir: DataDir = None

    def prepare(self, *, trusted: bool, quiet: bool) -> "PreparedPlan":
        """Load the experiment and its data, with progress on stderr.

        Args:
            trusted: Whether code that the experiment names may run. Without it, none runs, not even remembered code: a
                model, loss or metric of the user's own is left out, and anything else of the user's own is refused.
            quiet: Show no progress.
        """
        from discreet.experiment.configuration import experiment_file
        from discreet.models.networks.user_model import UserModel

        trust = Trust.all_code() if trusted else Trust.no_code(PLAN_REMEDY)
        source = experiment_file.load_experiment(self.file, tuple(self.settings or ()), self.data_dir, trust)
        whole = source.experiment
        with show_preparation(source, quiet=quiet) as ready:
            if not is_installed("torch"):
                from discreet.experiment.terms_builder import build_terms_without_torch

                return PreparedPlan(ready, build_terms_without_torch(ready), [])
            from discreet import api
            from discreet.planning.advice import advice

            if not trusted and (isinstance(whole.model, UserModel) or whole.loss or whole.metric):
                return PreparedPlan(ready, api.prepare_terms(ready), [])
            ready = ready.load_user_parts()
            job = api.prepare_job(ready)
            return PreparedPlan(ready, job.terms, list(advice(job)))

    def run_command(self) -> str:
        """Return the command that trains this experiment, ready to be copied."""
        words = [] if self.file is None else [str(self.file)]
        words += [word for setting in self.settings or () for word in ("--set", setting)]
        words += [] if self.data_dir is None else ["--data-dir", str(self.data_dir)]
        return shlex.join(["discreet", "run", *words])
