"""Fashion-MNIST: 60,000 pieces of clothing of 28 by 28 pixels, and 10,000 to test on; laid out as MNIST is."""

from typing import Literal

import torch

from discreet.data.partition import AnyPartition, Iid
from discreet.data.tasks import image_scaling
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.mnist import TEST, TRAIN
from discreet.data.tasks.task import Task
from discreet.part import Count, part
from discreet.paths import Paths


@part
class FashionMnist:
    """Ten classes, from T-shirt to ankle boot, equally many of each."""

    kind: Literal["fashion_mnist"] = "fashion_mnist"
    clients: Count | None = 10
    partition: AnyPartition = Iid()
    limit: Count | None = None
    public_examples: Count | None = None  # the last ones, set apart as nobody's

    def examples(self, paths: Paths) -> Examples:
        train, targets, test, test_targets = image_scaling.arrays(paths, "fashion_mnist", *TRAIN, *TEST)
        return Examples(
            name="fashion_mnist",
            inputs=image_scaling.pixels(train[: self.limit]),
            targets=image_scaling.labels(targets[: self.limit]),
            test_inputs=image_scaling.pixels(test),
            test_targets=image_scaling.labels(test_targets),
            kind="classification",
            classes=10,
            facts=image_scaling.facts("Fashion-MNIST", limit=self.limit),
        ).with_public(self.public_examples)

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        return self.examples(paths).build_task(self.clients, self.partition, generator)
