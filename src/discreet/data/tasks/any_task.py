"""Every kind of task that an experiment file can name."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Protocol, TypeAlias

from pydantic import Field

from discreet.contract import contract
from discreet.data.features.feature_task import Features
from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.acs_income import AcsIncome
from discreet.data.tasks.any_image_task import AnyImageTask
from discreet.data.tasks.digits import Digits
from discreet.data.tasks.lending_club import LendingClub
from discreet.data.tasks.merged_splits import MergedSplits
from discreet.data.tasks.task import Task
from discreet.lazy_torch import torch
from discreet.own_part import OwnPart
from discreet.paths import Paths


@contract("task")
class TaskSource(Protocol):
    """The contract of a task in an experiment file: it reads the data and assigns the examples to clients."""

    @abstractmethod
    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        """Return the clients' examples and the test examples.

        Args:
            generator: The source of randomness for a partition and for held-out examples.
            paths: Where data sets and the experiment's own files are.
        """


AnyTask: TypeAlias = Annotated[
    Digits | TableTask | AnyImageTask | AcsIncome | LendingClub | Features | MergedSplits,
    Field(discriminator="kind"),
    OwnPart(TaskSource),
]
