"""CIFAR-100: 50,000 colour photographs of 32 by 32 pixels in a hundred classes, and 10,000 to test on."""

from typing import Literal

import torch

from discreet.data.datasets.dataset_files import read_data_files
from discreet.data.datasets.file_formats import read_cifar
from discreet.data.partition import AnyPartition, Iid
from discreet.data.tasks import image_scaling
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task
from discreet.part import Count, part
from discreet.paths import Paths

FILES = ("train.bin", "test.bin")
COARSE, FINE = 0, 1  # the label bytes: which of 20 superclasses, which of 100 classes


@part
class Cifar100:
    """A hundred classes, or the 20 superclasses that they fall into."""

    kind: Literal["cifar100"] = "cifar100"
    clients: Count | None = 10
    partition: AnyPartition = Iid()
    scaling: image_scaling.Scaling = "unit"
    labels: Literal["fine", "coarse"] = "fine"
    public_examples: Count | None = None  # the last ones, set apart as nobody's

    def examples(self, paths: Paths) -> Examples:
        found = read_data_files(paths, "cifar100", FILES)
        train, test = (read_cifar(each.data, each.name, label_bytes=2) for each in found)
        column = FINE if self.labels == "fine" else COARSE
        return Examples(
            name="cifar100",
            inputs=image_scaling.pixels(train.images, self.scaling),
            targets=image_scaling.labels(train.labels[:, column]),
            test_inputs=image_scaling.pixels(test.images, self.scaling),
            test_targets=image_scaling.labels(test.labels[:, column]),
            kind="classification",
            classes=100 if self.labels == "fine" else 20,
            facts=image_scaling.facts("CIFAR-100", self.scaling),
        ).with_public(self.public_examples)

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        return self.examples(paths).build_task(self.clients, self.partition, generator)
