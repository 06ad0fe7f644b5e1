"""MNIST: 60,000 handwritten digits of 28 by 28 pixels by 539 writers, and 10,000 for testing by 297 other writers."""

from dataclasses import replace
from typing import Literal

import numpy as np

from discreet.data.tasks.examples import Examples
from discreet.data.tasks.image_examples import as_labels, image_examples, read_idx_files, read_idx_images
from discreet.data.tasks.image_task import ImageTask
from discreet.errors import InvalidInput
from discreet.part import Count, Flag, part
from discreet.paths import Paths
from discreet.privacy.card_lines import Line
from discreet.words import fill

TRAIN = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
TEST = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
WRITERS = "qmnist-train-labels-idx2-int"
WRITER_COLUMN = 2  # after the class and the NIST series


@part
class Mnist(ImageTask):
    """Ten classes.

    Attributes:
        limit: Use only this many training examples, from the start. All if not set.
        writers: Load who wrote each digit, as the QMNIST project found out. A partition by group needs it.
        public_examples: Number of examples, from the end, that are public and belong to no client. With `writers`,
            all examples of the last writers are public, until there are at least this many.
    """

    kind: Literal["mnist"] = "mnist"
    limit: Count | None = None
    writers: Flag = False

    def __post_init__(self) -> None:
        if self.partition.kind == "by_group" and not self.writers:
            raise InvalidInput("MNIST's groups are its writers, who are not loaded.", fix="Set writers = true.")

    def examples(self, paths: Paths) -> Examples:
        """Read the images and labels, and the writers if needed."""
        train, test = read_idx_images(paths, "mnist", TRAIN, TEST)
        examples = image_examples("mnist", "MNIST", train, test, classes=10, limit=self.limit)
        if self.writers:
            (writers,) = read_idx_files(paths, "mnist", WRITERS)
            names, groups = np.unique(writers[:, WRITER_COLUMN], return_inverse=True)
            examples = replace(
                examples,
                groups=as_labels(groups[: self.limit]),
                group_names=tuple(f"writer {number}" for number in names),
                facts=(*examples.facts, Line(fill("data.public_writers"), "owner")),
            )
        return examples.with_public(self.public_examples)
