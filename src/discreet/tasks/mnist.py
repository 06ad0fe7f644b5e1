"""MNIST: 60,000 handwritten digits of 28 by 28 pixels and 10,000 to test on, of 539 writers and 297 others."""

from typing import Literal

import numpy as np
import torch

from discreet.errors import InvalidInput
from discreet.part import Count, Flag, part
from discreet.partition import AnyPartition, Iid
from discreet.places import Places
from discreet.tasks import images
from discreet.tasks.examples import Examples
from discreet.tasks.task import Task

TRAIN = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
TEST = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
WRITERS = "qmnist-train-labels-idx2-int"
WRITER_COLUMN = 2  # after the class and the NIST series


@part
class Mnist:
    """Ten classes. `writers` loads who wrote each digit, as the QMNIST project found out, for a partition by group."""

    kind: Literal["mnist"] = "mnist"
    clients: Count | None = 10
    partition: AnyPartition = Iid()
    limit: Count | None = None
    writers: Flag = False
    public_examples: Count | None = None  # the last writers', or the last ones, set apart as nobody's

    def __post_init__(self) -> None:
        if self.partition.kind == "by_group" and not self.writers:
            raise InvalidInput("MNIST's groups are its writers, who are not loaded.", fix="Set writers = true.")

    def examples(self, places: Places) -> Examples:
        found = images.arrays(places, "mnist", *TRAIN, *TEST, *([WRITERS] if self.writers else []))
        train, targets, test, test_targets = found[:4]
        names, groups = np.unique(found[4][:, WRITER_COLUMN], return_inverse=True) if self.writers else ((), None)
        return Examples(
            name="mnist",
            inputs=images.pixels(train[: self.limit]),
            targets=images.labels(targets[: self.limit]),
            test_inputs=images.pixels(test),
            test_targets=images.labels(test_targets),
            kind="classification",
            classes=10,
            groups=None if groups is None else images.labels(groups[: self.limit]),
            group_names=tuple(f"writer {number}" for number in names),
            facts=(*images.facts("MNIST", limit=self.limit), *([images.WRITERS_ARE_PUBLIC] if self.writers else [])),
        ).with_public(self.public_examples)

    def load(self, generator: torch.Generator, places: Places) -> Task:
        return self.examples(places).dealt(self.clients, self.partition, generator)
