"""CIFAR-10: 50,000 colour photographs of 32 by 32 pixels, and 10,000 to test on."""

import math
from typing import Literal

import numpy as np
import torch

from discreet.data.datasets.dataset_files import read_data_files
from discreet.data.datasets.file_formats import read_cifar
from discreet.data.partition import AnyPartition, Iid
from discreet.data.tasks import image_scaling
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task
from discreet.part import Count, part
from discreet.paths import Paths

BATCHES, BATCH, TEST = 5, 10_000, "test_batch.bin"


@part
class Cifar10:
    """Ten classes, equally many of each, in the official order."""

    kind: Literal["cifar10"] = "cifar10"
    clients: Count | None = 10
    partition: AnyPartition = Iid()
    limit: Count | None = None
    scaling: image_scaling.Scaling = "unit"
    public_examples: Count | None = None  # the last ones, set apart as nobody's

    def examples(self, paths: Paths) -> Examples:
        needed = BATCHES if self.limit is None else min(BATCHES, math.ceil(self.limit / BATCH))
        files = [*(f"data_batch_{number}.bin" for number in range(1, needed + 1)), TEST]
        found = read_data_files(paths, "cifar10", files)
        *batches, test = (read_cifar(each.data, each.name, label_bytes=1) for each in found)
        train = np.concatenate([batch.images for batch in batches])[: self.limit]
        targets = np.concatenate([batch.labels for batch in batches])[: self.limit, 0]
        return Examples(
            name="cifar10",
            inputs=image_scaling.pixels(train, self.scaling),
            targets=image_scaling.labels(targets),
            test_inputs=image_scaling.pixels(test.images, self.scaling),
            test_targets=image_scaling.labels(test.labels[:, 0]),
            kind="classification",
            classes=10,
            facts=image_scaling.facts("CIFAR-10", self.scaling, self.limit),
        ).with_public(self.public_examples)

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        return self.examples(paths).build_task(self.clients, self.partition, generator)
