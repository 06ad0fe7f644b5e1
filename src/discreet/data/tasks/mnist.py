"""MNIST: 60,000 handwritten digits of 28 by 28 pixels and 10,000 to test on, of 539 writers and 297 others."""

from typing import Literal

import numpy as np
import torch

from discreet.data.partition import AnyPartition, Iid
from discreet.data.tasks import image_scaling
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.part import Count, Flag, part
from discreet.paths import Paths

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

    def examples(self, paths: Paths) -> Examples:
        found = image_scaling.arrays(paths, "mnist", *TRAIN, *TEST, *([WRITERS] if self.writers else []))
        train, targets, test, test_targets = found[:4]
        names, groups = np.unique(found[4][:, WRITER_COLUMN], return_inverse=True) if self.writers else ((), None)
        return Examples(
            name="mnist",
            inputs=image_scaling.pixels(train[: self.limit]),
            targets=image_scaling.labels(targets[: self.limit]),
            test_inputs=image_scaling.pixels(test),
            test_targets=image_scaling.labels(test_targets),
            kind="classification",
            classes=10,
            groups=None if groups is None else image_scaling.labels(groups[: self.limit]),
            group_names=tuple(f"writer {number}" for number in names),
            facts=(
                *image_scaling.facts("MNIST", limit=self.limit),
                *([image_scaling.WRITERS_ARE_PUBLIC] if self.writers else []),
            ),
        ).with_public(self.public_examples)

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        return self.examples(paths).build_task(self.clients, self.partition, generator)
