"""Fashion-MNIST: 60,000 images of clothing of 28 by 28 pixels, and 10,000 for testing, in files like MNIST's."""

from typing import Literal

from discreet.data.tasks.examples import Examples
from discreet.data.tasks.image_examples import image_examples, read_idx_images
from discreet.data.tasks.image_task import ImageTask
from discreet.data.tasks.mnist import TEST, TRAIN
from discreet.part import Count, part
from discreet.paths import Paths


@part
class FashionMnist(ImageTask):
    """Ten classes of equal size, from T-shirt to ankle boot.

    Attributes:
        limit: Use only this many training examples, from the start. All if not set.
    """

    kind: Literal["fashion_mnist"] = "fashion_mnist"
    limit: Count | None = None

    def examples(self, paths: Paths) -> Examples:
        """Read the images and labels."""
        train, test = read_idx_images(paths, "fashion_mnist", TRAIN, TEST)
        examples = image_examples("fashion_mnist", "Fashion-MNIST", train, test, classes=10, limit=self.limit)
        return examples.with_public(self.public_examples)
