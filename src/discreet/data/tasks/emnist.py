"""EMNIST: handwritten letters and digits of 28 by 28 pixels, in the splits that NIST publishes."""

from typing import Literal, TypeAlias

import torch

from discreet.data.partition import AnyPartition, Iid
from discreet.data.tasks import image_scaling
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task
from discreet.part import Count, part
from discreet.paths import Paths

EmnistSplit: TypeAlias = Literal["letters", "byclass", "bymerge", "balanced", "digits", "mnist"]

CLASSES: dict[EmnistSplit, int] = {
    "letters": 26,
    "byclass": 62,
    "bymerge": 47,
    "balanced": 47,
    "digits": 10,
    "mnist": 10,
}


@part
class Emnist:
    """26 letters, or another of NIST's splits."""

    kind: Literal["emnist"] = "emnist"
    clients: Count | None = 10
    partition: AnyPartition = Iid()
    split: EmnistSplit = "letters"
    public_examples: Count | None = None  # the last ones, set apart as nobody's

    def examples(self, paths: Paths) -> Examples:
        files = [
            f"emnist-{self.split}-{use}-{what}"
            for use in ("train", "test")
            for what in ("images-idx3-ubyte", "labels-idx1-ubyte")
        ]
        train, targets, test, test_targets = image_scaling.arrays(paths, "emnist", *files)
        first = 1 if self.split == "letters" else 0  # letters are numbered from 1
        return Examples(
            name=f"emnist_{self.split}",
            inputs=image_scaling.pixels(train.swapaxes(1, 2)),  # the files hold every picture mirrored at its diagonal
            targets=image_scaling.labels(targets) - first,
            test_inputs=image_scaling.pixels(test.swapaxes(1, 2)),
            test_targets=image_scaling.labels(test_targets) - first,
            kind="classification",
            classes=CLASSES[self.split],
            facts=image_scaling.facts("EMNIST"),
        ).with_public(self.public_examples)

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        return self.examples(paths).build_task(self.clients, self.partition, generator)
