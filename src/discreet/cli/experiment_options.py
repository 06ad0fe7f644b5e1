"""The options of commands that read an experiment without training it: FILE, --set and --data-dir."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options import DataDir, Overrides
from discreet.cli.progress_bar import show_preparation

if TYPE_CHECKING:
    from discreet.experiment.configuration.experiment_file import Source
    from discreet.experiment.job import Job
    from discreet.trust import Trust


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """Which experiment to read; without FILE, the built-in one on digits."""

    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)] = None
    settings: Overrides = None
    data_dir: DataDir = None

    def prepare(self, trust: "Trust", *, quiet: bool) -> "tuple[Source, Job]":
        """Load the experiment and its data, with progress on stderr."""
        from discreet import api
        from discreet.experiment.configuration import experiment_file

        source = experiment_file.load_experiment(self.file, tuple(self.settings or ()), self.data_dir, trust)
        with show_preparation(source.load_user_parts(), quiet=quiet) as ready:
            return ready, api.prepare_job(ready)

    def run_command(self) -> str:
        """Return the command that trains this experiment, ready to be copied."""
        words = [] if self.file is None else [str(self.file)]
        words += [word for setting in self.settings or () for word in ("--set", setting)]
        words += [] if self.data_dir is None else ["--data-dir", str(self.data_dir)]
        return shlex.join(["discreet", "run", *words])
