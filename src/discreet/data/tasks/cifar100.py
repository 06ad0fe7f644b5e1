"""CIFAR-100: 50,000 colour images of 32 by 32 pixels in 100 classes for training, and 10,000 for testing."""

from typing import Literal

from discreet.data.datasets.dataset_files import read_data_files
from discreet.data.datasets.file_formats import read_cifar
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.image_examples import Scaling, image_examples
from discreet.data.tasks.image_task import ImageTask
from discreet.part import part
from discreet.paths import Paths

FILES = ("train.bin", "test.bin")
COARSE, FINE = 0, 1  # the two label bytes: one of 20 superclasses, and one of 100 classes


@part
class Cifar100(ImageTask):
    """100 classes ("fine" labels), or the 20 superclasses that contain them ("coarse").

    Attributes:
        scaling: "unit" scales pixels to [0, 1]; "imagenet" then standardises each channel by published constants.
        labels: "fine" for 100 classes, "coarse" for 20.
    """

    kind: Literal["cifar100"] = "cifar100"
    scaling: Scaling = "unit"
    labels: Literal["fine", "coarse"] = "fine"

    def examples(self, paths: Paths) -> Examples:
        """Read both files, with the labels that were chosen."""
        contents = read_data_files(paths, "cifar100", FILES)
        column, classes = (FINE, 100) if self.labels == "fine" else (COARSE, 20)
        train, test = (read_cifar(content.data, content.name, label_bytes=2, column=column) for content in contents)
        examples = image_examples("cifar100", "CIFAR-100", train, test, classes=classes, scaling=self.scaling)
        return examples.with_public(self.public_examples)
