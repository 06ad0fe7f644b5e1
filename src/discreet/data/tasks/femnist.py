"""FEMNIST (LEAF): handwritten digits and letters of 28 by 28 pixels, with the writer of each."""

from dataclasses import replace
from typing import Any, Literal

from numpy.typing import NDArray

from discreet.data.datasets.dataset_files import read_data_file
from discreet.data.datasets.file_formats import LabelledImages, read_npz
from discreet.data.datasets.owner_checksums import FileContent, describe_origin, disclose_checksums
from discreet.data.partition import AnyPartition, ByGroup
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.image_examples import (
    WHITE,
    as_labels,
    describe_public_data,
    describe_scaling,
    image_examples,
    scale_pixels,
)
from discreet.errors import InvalidInput
from discreet.part import Count, Flag, Share, part
from discreet.paths import Paths
from discreet.privacy.card_lines import Line
from discreet.words import fill

FILE = "femnist_540_writers.npz"
ARRAYS = ("images", "labels", "writer", "split", "writer_ids", "writer_complete")
TRAIN, TEST = 0, 1


@part
class Femnist:
    """62 classes. Each writer is a client, and LEAF's split holds out a tenth of each writer's examples.

    Attributes:
        clients: Number of clients. If not set, every group is a client.
        partition: How examples are assigned to clients.
        validation_fraction: The share of each client's training examples that is held out for choosing settings.
        complete_only: Leave out the writers of whom the file contains only LEAF's test examples.
        public_writers: Use the examples of those incomplete writers as public data, which belongs to no client.
    """

    kind: Literal["femnist"] = "femnist"
    clients: Count | None = None
    partition: AnyPartition = ByGroup()
    validation_fraction: Share = 0.0
    complete_only: Flag = True
    public_writers: Flag = False

    def __post_init__(self) -> None:
        if self.public_writers and not self.complete_only:
            raise InvalidInput(
                "The incomplete writers can't be public and tested on at once.", fix="Leave out complete_only = false."
            )

    def examples(self, paths: Paths) -> Examples:
        """Read the file, invert its images, and split them as LEAF does."""
        content = read_data_file(paths, "femnist", FILE)
        images, labels, writer, split, writers, complete = read_femnist(content)
        used = complete[writer] if self.complete_only else writer == writer
        train, test = used & (split == TRAIN), used & (split == TEST)
        ink = LabelledImages(WHITE - images, labels)  # paper is white here, and black in MNIST
        public = None
        if self.public_writers:
            incomplete = _select_incomplete(ink, ~complete[writer])
            public = scale_pixels(incomplete.images), as_labels(incomplete.labels)
        return replace(
            image_examples("femnist", "FEMNIST", ink.select(train), ink.select(test), classes=62),
            groups=as_labels(writer[train]),
            group_names=tuple(map(str, writers)),
            public=public,
            facts=(
                *describe_origin([content], describe_public_data("FEMNIST")),
                describe_scaling(),
                fill("data.inverted"),
                Line(fill("data.public_writers"), "owner"),
                *([Line(fill("data.incomplete_writers"), "owner")] if self.public_writers else []),
            ),
            not_covered=disclose_checksums([content]),
        )


def _select_incomplete(images: LabelledImages, incomplete: NDArray[Any]) -> LabelledImages:
    if not incomplete.any():
        raise InvalidInput(f"{FILE} has no incomplete writer who could be public.", fix="Leave out public_writers.")
    return images.select(incomplete)


def read_femnist(content: FileContent) -> list[NDArray[Any]]:
    """Read the arrays named in `ARRAYS`, in that order.

    Raises:
        InvalidInput: The arrays don't fit each other, as may happen with a file of the user's own.
    """
    arrays = read_npz(content.data, content.name, *ARRAYS)
    images, labels, writer, split, writers, complete = arrays
    count = len(labels)
    fits = (
        images.shape == (count, 28, 28)
        and images.dtype == "uint8"
        and writer.shape == split.shape == labels.shape == (count,)
        and writers.shape == complete.shape
        and all(numbers.dtype.kind in "iu" for numbers in (labels, writer, split))
        and complete.dtype == bool
        and count > 0
        and 0 <= int(writer.min()) <= int(writer.max()) < len(writers)
    )
    if not fits:
        raise InvalidInput(
            f"The arrays of {FILE} do not fit each other: images is {images.dtype} {images.shape}, labels "
            f"{labels.shape}, writer {writer.shape}, split {split.shape}, writer_ids {writers.shape} and "
            f"writer_complete {complete.dtype} {complete.shape}.",
            fix="images must be uint8, n by 28 by 28; labels, writer and split n whole numbers; each writer an index "
            "into writer_ids; and writer_complete true or false for each of writer_ids.",
        )
    return arrays
