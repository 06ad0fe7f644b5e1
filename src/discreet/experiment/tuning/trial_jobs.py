"""The trials of a search as jobs: the experiment's file with some settings changed, on data that is dealt once."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from discreet.algorithms.declarations import trusted_parts
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.experiment.comparison.cells import name_errors
from discreet.experiment.configuration import experiment_file, toml_document
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.configuration.tune_table import Tune
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder
from discreet.experiment.promise import data_ranges
from discreet.experiment.tuning.search_space import Point, format_settings
from discreet.paths import OnProgress
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.trust import Trust

MISSING_TABLE = "discreet tune needs a [tune] table that names what to search, and {file} has none."


@dataclass
class TrialBuilder:
    """Builds the job of any point of the search space.

    Attributes:
        file: The experiment's file.
        overrides: Settings of all trials, as `--set` takes them.
        data_dir: The folder of downloaded data sets.
        trust: Which code that the file names may run.
        deal: The key that deals the examples to clients and draws the first weights: the same in all trials.
        accept_data_ranges: Whether the user accepted ranges that were taken from the data.
        on_progress: Is told how the preparation of the data goes on.
    """

    file: Path
    overrides: tuple[str, ...]
    data_dir: Path | None
    trust: Trust | None
    deal: RunKey
    accept_data_ranges: bool = False
    on_progress: OnProgress | None = None
    _task: Task | None = field(default=None, repr=False)

    def read(self, point: Point) -> Source:
        """Read the file with the settings of this point."""
        with name_errors(", ".join(format_settings(point)) or str(self.file), f"{self.file}: "):
            settings = (*self.overrides, *format_settings(point))
            return experiment_file.load_experiment(self.file, settings, self.data_dir, self.trust).load_user_parts()

    def read_tune(self) -> Tune:
        """Return the [tune] table of the file.

        Raises:
            InvalidInput: There is none, or the file has a seed while data is private.
        """
        tune = self.read({}).experiment.tune
        if tune is None:
            raise InvalidInput(
                MISSING_TABLE.format(file=self.file),
                fix='For example: tune.space."algorithm.learning_rate" = { low = 0.1, high = 10.0, log = true }',
            )
        return tune

    def build(self, point: Point, key: RunKey | None = None) -> Job:
        """Build the job of this point. An error names the point."""
        source = self.read(point)
        source = replace(source, experiment=replace(source.experiment, tune=None))
        if self.on_progress is not None:
            source = replace(source, paths=replace(source.paths, on_progress=self.on_progress))
        seed = source.experiment.seed
        own = key or (RunKey.generate() if seed is None else RunKey.from_seed(seed))
        with name_errors(", ".join(format_settings(point)) or str(self.file)):
            if self._task is None:
                self._task = source.experiment.load_task(self.deal.generator(Purpose.TASK), source.paths)
            job = job_builder.build_job(source, own, self._task, public=self.deal)
        data_ranges.check_accepted(job.task.ranges_from_data, accepted=self.accept_data_ranges)
        if not job.settings.engine.is_simulated:
            raise InvalidInput("A search trains simulated clients.", fix='Use engine = "embedded".')
        if job.settings.track:
            raise InvalidInput(
                "A search trains without trackers: of a random search only the best trial may be seen, and one that "
                "counts every trial has a page of its own with all scores.",
                fix="Leave track out.",
            )
        return replace(job, accept_data_ranges=self.accept_data_ranges)


def training_job(job: Job, whole_epsilon: float | None) -> Job:
    """Return the job with which a trial is trained: it never looks at validation data, and promises the whole search.

    Args:
        job: The trial.
        whole_epsilon: The epsilon of the whole search, which stands on the card. None leaves the promise as it is.
    """
    job = replace(job, task=replace(job.task, validation=None), validation_data=None)
    if whole_epsilon is None or job.privacy is None:
        return job
    resolved = toml_document.parse_toml(job.resolved_text, "resolved.toml")
    resolved["privacy"]["epsilon"] = whole_epsilon
    promise = replace(job.privacy, epsilon=whole_epsilon)
    return replace(job, privacy=promise, resolved_text=toml_document.format_toml(resolved))


def check_private(job: Job) -> None:
    """Refuse a trial whose price is not certified, or not the same for all clients.

    Raises:
        InvalidInput: It has no promise, a seed, clients with epsilons of their own, or noise that a part only declares.
    """
    if job.privacy is None:
        raise InvalidInput(
            "A search on private data needs the promise of one trial, and this file has no [privacy].",
            fix="Add [privacy], or declare that all data of the file is public: --public-data.",
        )
    if job.key.is_seeded:
        raise InvalidInput(
            "A seed makes all randomness known, so a search with one protects nobody.",
            fix="Leave seed out, or declare that all data of the file is public: --public-data.",
        )
    if isinstance(job.privacy.epsilon, tuple) or len(job.algorithm.client_groups(job.population)) > 1:
        raise InvalidInput(
            "A search is counted alike for all clients, and here clients have numbers of their own.",
            fix="Give one number for all clients.",
        )
    if own := trusted_parts(job.algorithm):
        raise InvalidInput(
            f"A search counts what is certified, and this noise is declared by {own[0].kind}.",
            fix="Use a part of this package.",
        )
