"""CIFAR-10: 50,000 colour photographs of 32 by 32 pixels, and 10,000 to test on."""

import math
from typing import Literal

import numpy as np
import torch

from discreet.datasets.files import contents
from discreet.datasets.formats import cifar
from discreet.part import Count, part
from discreet.partition import AnyPartition, Iid
from discreet.places import Places
from discreet.tasks import images
from discreet.tasks.examples import Examples
from discreet.tasks.task import Task

BATCHES, BATCH, TEST = 5, 10_000, "test_batch.bin"


@part
class Cifar10:
    """Ten classes, equally many of each, in the official order."""

    kind: Literal["cifar10"] = "cifar10"
    clients: Count | None = 10
    partition: AnyPartition = Iid()
    limit: Count | None = None
    scaling: images.Scaling = "unit"
    public_examples: Count | None = None  # the last ones, set apart as nobody's

    def examples(self, places: Places) -> Examples:
        needed = BATCHES if self.limit is None else min(BATCHES, math.ceil(self.limit / BATCH))
        files = [*(f"data_batch_{number}.bin" for number in range(1, needed + 1)), TEST]
        found = contents(places, "cifar10", files)
        *batches, test = (cifar(each.data, each.name, label_bytes=1) for each in found)
        train = np.concatenate([batch.images for batch in batches])[: self.limit]
        targets = np.concatenate([batch.labels for batch in batches])[: self.limit, 0]
        return Examples(
            name="cifar10",
            inputs=images.pixels(train, self.scaling),
            targets=images.labels(targets),
            test_inputs=images.pixels(test.images, self.scaling),
            test_targets=images.labels(test.labels[:, 0]),
            kind="classification",
            classes=10,
            facts=images.facts("CIFAR-10", self.scaling, self.limit),
        ).with_public(self.public_examples)

    def load(self, generator: torch.Generator, places: Places) -> Task:
        return self.examples(places).dealt(self.clients, self.partition, generator)
