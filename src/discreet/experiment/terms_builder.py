"""Calibrate an experiment's algorithm, and build its terms where torch is not installed."""

from dataclasses import replace

from discreet.algorithms.aggregation import Plain
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.sparsifiers.common_mask import missing_public_data
from discreet.data.data_facts import DataFacts
from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.digits import Digits
from discreet.data.tasks.task_loading import check_names_persons
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import Experiment, Source
from discreet.experiment.configuration.run_settings import RunSettings
from discreet.experiment.promise import calibrate, person_bound
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.terms import Terms
from discreet.extras import missing_library
from discreet.part import check_exact
from discreet.paths import Paths
from discreet.user_part import UserPart, load_user_parts

WITHOUT_TORCH = (
    "torch is not installed, so the model's size, the bytes and the noise-to-signal ratio are not known, and whether "
    "the algorithm can train the model is not checked. To see them: pip install 'discreet[train]'"
)


def calibrate_algorithm(
    data: DataFacts,
    algorithm: Algorithm,
    privacy: Privacy | None,
    settings: RunSettings,
    population: Population,
    dimension: int | None,
) -> Algorithm:
    """Return the algorithm with its noise, and refuse what doesn't fit the data or the engine.

    Args:
        data: What is known about the data.
        algorithm: The algorithm as the user wrote it.
        privacy: The promise. None for a run without privacy.
        settings: The settings of the run.
        population: The public client sizes.
        dimension: The number of trained parameters. None if it is not known.
    """
    if isinstance(algorithm.server, UserPart) and settings.checkpoint_every > 1:
        raise InvalidInput(
            f"With a server optimiser of your own, {algorithm.server.kind}, every round needs a checkpoint: what it "
            "keeps to itself would make a repeated round another one.",
            fix="Leave checkpoint_every out.",
        )
    wanted, stored = data.standardisation, algorithm.standardisation
    if stored is not None and (wanted is None or replace(stored, noise_multiplier=None) != wanted):
        raise InvalidInput("algorithm.standardisation is not what follows from the task.", fix="Leave it out.")
    algorithm = replace(algorithm, standardisation=stored or wanted)
    algorithm = calibrate.calibrate_noise(algorithm, privacy, settings.rounds, population, dimension)
    check_exact("algorithm", algorithm)
    check_exact("privacy", privacy)
    if algorithm.sparsifier.needs_public_data and data.public_examples is None:
        raise missing_public_data()
    person_bound.check_data(data.person, privacy, private=bool(algorithm.releases(population, 0)))
    settings.engine.check(algorithm, population)
    return algorithm


def build_terms_without_torch(source: Source) -> Terms:
    """Read the data and calibrate the noise; no model is built, so nothing is known of its size.

    Raises:
        MissingExtra: The client sizes or the price can't be computed without torch.
    """
    paths = source.paths
    experiment = load_user_parts(source.experiment, paths.folder, paths.trust, skip=("metric",))
    aggregation = experiment.algorithm.aggregation
    if not isinstance(aggregation, Plain) and not aggregation.needs_each_upload:
        raise missing_library("torch", "The price of a sum of integers depends on the model's size, which")
    population, data = _describe_task(experiment, paths)
    return Terms(
        settings=experiment,
        algorithm=calibrate_algorithm(
            data, experiment.algorithm, experiment.privacy, experiment, population, dimension=None
        ),
        privacy=experiment.privacy,
        population=population,
        data=data,
        is_seeded=experiment.seed is not None,
        size=None,
        metric_names=None,
        unknown=(WITHOUT_TORCH,),
    )


def _describe_task(experiment: Experiment, paths: Paths) -> tuple[Population, DataFacts]:
    """Return the client sizes and the facts about the data, for tasks that can be read without torch."""
    task, person = experiment.task, None if experiment.privacy is None else experiment.privacy.person
    if person is not None:
        check_names_persons(task, person)
    if isinstance(task, TableTask):
        return task.describe(paths, person)
    if isinstance(task, Digits):
        return task.describe()
    raise missing_library("torch", f"Counting the examples of the task {task.kind!r}")
