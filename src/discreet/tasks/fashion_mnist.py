"""Fashion-MNIST: 60,000 pieces of clothing of 28 by 28 pixels, and 10,000 to test on; laid out as MNIST is."""

from typing import Literal

import torch

from discreet.part import Count, part
from discreet.partition import AnyPartition, Iid
from discreet.places import Places
from discreet.tasks import images
from discreet.tasks.examples import Examples
from discreet.tasks.mnist import TEST, TRAIN
from discreet.tasks.task import Task


@part
class FashionMnist:
    """Ten classes, from T-shirt to ankle boot, equally many of each."""

    kind: Literal["fashion_mnist"] = "fashion_mnist"
    clients: Count | None = 10
    partition: AnyPartition = Iid()
    limit: Count | None = None
    public_examples: Count | None = None  # the last ones, set apart as nobody's

    def examples(self, places: Places) -> Examples:
        train, targets, test, test_targets = images.arrays(places, "fashion_mnist", *TRAIN, *TEST)
        return Examples(
            name="fashion_mnist",
            inputs=images.pixels(train[: self.limit]),
            targets=images.labels(targets[: self.limit]),
            test_inputs=images.pixels(test),
            test_targets=images.labels(test_targets),
            kind="classification",
            classes=10,
            facts=images.facts("Fashion-MNIST", limit=self.limit),
        ).with_public(self.public_examples)

    def load(self, generator: torch.Generator, places: Places) -> Task:
        return self.examples(places).dealt(self.clients, self.partition, generator)
