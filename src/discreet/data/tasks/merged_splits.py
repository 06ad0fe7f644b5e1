"""A data set whose official test examples are dealt out with the others; each client then holds some out itself."""

from dataclasses import replace
from typing import Annotated, Literal, TypeAlias

import torch
from pydantic import Field

from discreet.data.features.feature_task import Features
from discreet.data.partition import AnyPartition
from discreet.data.tasks.cifar10 import Cifar10
from discreet.data.tasks.cifar100 import Cifar100
from discreet.data.tasks.emnist import Emnist
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.fashion_mnist import FashionMnist
from discreet.data.tasks.femnist import Femnist
from discreet.data.tasks.mnist import Mnist
from discreet.data.tasks.task import Task
from discreet.part import Probability, part
from discreet.paths import Paths

AnyMergeable: TypeAlias = Annotated[
    Mnist | FashionMnist | Cifar10 | Cifar100 | Emnist | Femnist | Features, Field(discriminator="kind")
]


@part
class MergedSplits:
    """Clients and partition are those of `of`, over all its examples; `test_fraction` of each client's are held out.

    Evaluation takes all that is held out together: where clients hold equally much, that is the mean of theirs.
    """

    kind: Literal["merged"] = "merged"
    of: AnyMergeable
    test_fraction: Probability = 0.2

    @property
    def clients(self) -> int | None:
        return self.of.clients

    @property
    def partition(self) -> AnyPartition:
        return self.of.partition

    def examples(self, paths: Paths) -> Examples:
        return replace(self.of.examples(paths), test_fraction=self.test_fraction)

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        return self.examples(paths).build_task(self.clients, self.partition, generator)
