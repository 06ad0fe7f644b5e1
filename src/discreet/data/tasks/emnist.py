"""EMNIST: handwritten letters and digits of 28 by 28 pixels, in the splits that NIST publishes."""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.data.datasets.file_formats import LabelledImages
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.image_examples import image_examples, read_idx_files
from discreet.data.tasks.image_task import ImageTask
from discreet.part import part
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
class Emnist(ImageTask):
    """26 letters, or another of NIST's splits.

    Attributes:
        split: The split of EMNIST, as NIST names it.
    """

    kind: Literal["emnist"] = "emnist"
    split: EmnistSplit = "letters"

    def examples(self, paths: Paths) -> Examples:
        """Read the images and labels of the split."""
        files = [
            f"emnist-{self.split}-{use}-{what}"
            for use in ("train", "test")
            for what in ("images-idx3-ubyte", "labels-idx1-ubyte")
        ]
        train, targets, test, test_targets = read_idx_files(paths, "emnist", *files)
        return image_examples(
            f"emnist_{self.split}",
            "EMNIST",
            self._correct(train, targets),
            self._correct(test, test_targets),
            classes=CLASSES[self.split],
        ).with_public(self.public_examples)

    def _correct(self, images: NDArray[np.uint8], labels: NDArray[Any]) -> LabelledImages:
        """Transpose the images, which the files store mirrored at the diagonal, and number the classes from 0."""
        first = 1 if self.split == "letters" else 0
        return LabelledImages(images.swapaxes(1, 2), labels.astype(np.int64) - first)
