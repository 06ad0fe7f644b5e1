"""Tuning without test data: a part of every client's training examples takes the place of the test examples."""

from dataclasses import dataclass, replace

import torch

from discreet.data.federation import Federation
from discreet.data.tasks.task import Task, split_held_out, training_size
from discreet.experiment.comparison.comparison import DataCache
from discreet.experiment.configuration.experiment_file import Source
from discreet.randomness.streams import RunKey

FRACTION = 0.2


def hold_out(task: Task, fraction: float = FRACTION) -> Task:
    """A copy of the task that is tested on `fraction` of each client's training examples, and trained on the others."""
    train = task.train
    kept, validation = split_held_out(train.sizes, fraction, torch.Generator().manual_seed(0))
    inputs, targets = train.examples_at(validation)
    order = kept if train.order is None else train.order[kept]
    sizes = tuple(training_size(size, fraction) for size in train.sizes)
    smaller = Federation(train.inputs, train.targets, sizes, train.max_multiplicity, order)
    return replace(task, train=smaller, test_inputs=inputs, test_targets=targets)


@dataclass
class ValidationData(DataCache):
    """The data of runs that are compared, with a validation part instead of the test examples."""

    def load_task(self, source: Source, key: RunKey) -> Task:
        return hold_out(super().load_task(source, key))
