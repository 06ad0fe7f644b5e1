"""CIFAR-10: 50,000 colour images of 32 by 32 pixels for training, and 10,000 for testing."""

import math
from typing import Literal

import numpy as np

from discreet.data.datasets.dataset_files import read_data_files
from discreet.data.datasets.file_formats import LabelledImages, read_cifar
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.image_examples import Scaling, image_examples
from discreet.data.tasks.image_task import ImageTask
from discreet.part import Count, part
from discreet.paths import Paths

BATCHES, BATCH, TEST = 5, 10_000, "test_batch.bin"


@part
class Cifar10(ImageTask):
    """Ten classes of equal size, in the official order.

    Attributes:
        limit: Use only this many training examples, from the start. All if not set.
        scaling: "unit" scales pixels to [0, 1]; "imagenet" then standardises each channel by published constants.
    """

    kind: Literal["cifar10"] = "cifar10"
    limit: Count | None = None
    scaling: Scaling = "unit"

    def examples(self, paths: Paths) -> Examples:
        """Read the training batches that `limit` needs, and the test batch."""
        needed = BATCHES if self.limit is None else min(BATCHES, math.ceil(self.limit / BATCH))
        files = [*(f"data_batch_{number}.bin" for number in range(1, needed + 1)), TEST]
        contents = read_data_files(paths, "cifar10", files)
        *batches, test = (read_cifar(content.data, content.name, label_bytes=1) for content in contents)
        train = LabelledImages(
            np.concatenate([batch.images for batch in batches]), np.concatenate([batch.labels for batch in batches])
        )
        return image_examples(
            "cifar10",
            "CIFAR-10",
            train,
            test,
            classes=10,
            scaling=self.scaling,
            limit=self.limit,
        ).with_public(self.public_examples)
