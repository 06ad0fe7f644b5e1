"""Load any task, and bound the rows of each person if the promise is for a person."""

from __future__ import annotations

from dataclasses import replace

from discreet.data.features.feature_task import Features
from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.any_image_task import AnyImageTask
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.merged_splits import MergedSplits
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.paths import Paths
from discreet.privacy.card_lines import Line
from discreet.privacy.release import Person
from discreet.user_part import UserPart
from discreet.words import fill


def load_task(task: AnyTask, generator: torch.Generator, paths: Paths, person: Person | None = None) -> Task:
    """Read a task's data and assign its examples to clients.

    Args:
        task: The task, as an experiment file names it.
        generator: The source of randomness for the partition and the held-out examples.
        paths: Where data sets and the experiment's own files are.
        person: Use at most `at_most` rows of each person in each of at most `clients_at_most` clients. None uses all.

    Raises:
        InvalidInput: The data is missing or damaged, or the task has no column that names persons.
    """
    if person is not None:
        check_names_persons(task, person)
        assert isinstance(task, TableTask)
        return task.load(generator, paths, person)
    if isinstance(task, AnyImageTask | Features | MergedSplits):
        source = find_source(task)
        examples = task.examples(paths)
        return examples.build_task(source.clients, source.partition, generator, source.validation_fraction)
    loaded = task.load(generator, paths)
    if type(loaded) is not Task:  # of a user's own code
        raise InvalidInput(
            f"The task {task.kind} must load a Task, and loaded an object of the class {type(loaded).__name__}.",
            fix="Return what discreet.clients_from_arrays or discreet.clients_from_csv returns.",
        )
    if isinstance(task, UserPart):
        own = Line(fill("not_covered.own_task", task=task.title), "author")
        facts = tuple(Line(fill("data.on_word_of", task=task.kind, fact=fact), "author") for fact in loaded.facts)
        loaded = replace(loaded, facts=facts, not_covered=(*loaded.not_covered, own))
    return loaded


def find_source(task: AnyImageTask | Features | MergedSplits) -> AnyImageTask:
    """Return the data set that a task is made of. Its clients and partition are those of the task."""
    return find_source(task.of) if isinstance(task, Features | MergedSplits) else task


def check_names_persons(task: AnyTask, person: Person) -> None:
    """Refuse a task that can't have the person's column. A table is checked for the column when it is read."""
    if not isinstance(task, TableTask):
        raise InvalidInput(
            f"The promise is for one person, named by column {person.column!r}, and the task {task.kind!r} has no such "
            "column.",
            fix='Use a table of your own that has it (kind = "csv" or "parquet"), or promise for unit = "example" or '
            '"client".',
        )
