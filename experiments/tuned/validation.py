"""Tuning without test data: a part of every client's training examples takes the place of the test examples."""

from dataclasses import dataclass, replace

import torch

from discreet.data.tasks.task import Task
from discreet.experiment.comparison.comparison import DataCache
from discreet.experiment.configuration.experiment_file import Source
from discreet.randomness.streams import RunKey

FRACTION = 0.2


def hold_out(task: Task, fraction: float = FRACTION) -> Task:
    """A copy of the task that is tested on `fraction` of each client's training examples, and trained on the others."""
    smaller = task.hold_out_validation(fraction, torch.Generator().manual_seed(0))
    assert smaller.validation is not None
    inputs, targets = smaller.validation
    return replace(smaller, test_inputs=inputs, test_targets=targets, validation=None, facts=task.facts)


@dataclass
class ValidationData(DataCache):
    """The data of runs that are compared, with a validation part instead of the test examples."""

    def load_task(self, source: Source, key: RunKey) -> Task:
        return hold_out(super().load_task(source, key))
