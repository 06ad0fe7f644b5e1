"""Load any task, with the rows of each person bounded where a person is promised something."""

import torch

from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.paths import Paths
from discreet.privacy.release import Person


def load_task(task: AnyTask, generator: torch.Generator, paths: Paths, person: Person | None) -> Task:
    """The task's data. With a `person`, each has at most `max_examples` rows, all in one client."""
    if person is None:
        return task.load(generator, paths)
    check_names_persons(task, person)
    assert isinstance(task, TableTask)
    return task.load(generator, paths, person)


def check_names_persons(task: AnyTask, person: Person) -> None:
    """Refuse a task that can't have the column; whether a table has it shows when it is read."""
    if not isinstance(task, TableTask):
        raise InvalidInput(
            f"The promise is for one person, named by column {person.column!r}, and the task {task.kind!r} has no such "
            "column.",
            fix='Use a table of your own that has it (kind = "csv" or "parquet"), or promise for unit = "example" or '
            '"client".',
        )
