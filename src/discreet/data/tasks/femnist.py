"""FEMNIST (LEAF): handwritten digits and letters of 28 by 28 pixels, each of a known writer."""

from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from discreet.data.datasets.dataset_files import read_data_file
from discreet.data.datasets.file_formats import read_npz
from discreet.data.datasets.owner_checksums import FileContent, describe_origin, disclose_checksums
from discreet.data.partition import AnyPartition, ByGroup
from discreet.data.tasks import image_scaling
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.part import Count, Flag, part
from discreet.paths import Paths

FILE = "femnist_540_writers.npz"
ARRAYS = ("images", "labels", "writer", "split", "writer_ids", "writer_complete")
TRAIN, TEST = 0, 1
PUBLIC_WRITERS = "Writers of whom the file has only what LEAF tests on are public, and no clients."


@part
class Femnist:
    """62 classes; a writer is a client, and LEAF's split holds a tenth of each writer's examples out.

    `complete_only` leaves out the writers of whom the file has only what LEAF tests on; `public_writers` takes what
    there is of them as public data, which is nobody's.
    """

    kind: Literal["femnist"] = "femnist"
    clients: Count | None = None
    partition: AnyPartition = ByGroup()
    complete_only: Flag = True
    public_writers: Flag = False

    def __post_init__(self) -> None:
        if self.public_writers and not self.complete_only:
            raise InvalidInput(
                "The incomplete writers can't be public and tested on at once.", fix="Leave out complete_only = false."
            )

    def examples(self, paths: Paths) -> Examples:
        read = read_data_file(paths, "femnist", FILE)
        pictures, targets, writer, split, writers, complete = read_femnist(read)
        taken = complete[writer] if self.complete_only else writer == writer
        train, test = taken & (split == TRAIN), taken & (split == TEST)
        ink = image_scaling.WHITE - pictures  # paper is white there, and black in MNIST
        return Examples(
            name="femnist",
            inputs=image_scaling.pixels(ink[train]),
            targets=image_scaling.labels(targets[train]),
            test_inputs=image_scaling.pixels(ink[test]),
            test_targets=image_scaling.labels(targets[test]),
            kind="classification",
            classes=62,
            groups=image_scaling.labels(writer[train]),
            group_names=tuple(map(str, writers)),
            public=_public_examples(ink, targets, ~complete[writer]) if self.public_writers else None,
            facts=(
                *describe_origin([read], image_scaling.public("FEMNIST")),
                image_scaling.scaled(),
                "Pictures are inverted, so that ink is bright as in MNIST.",
                image_scaling.WRITERS_ARE_PUBLIC,
                *([PUBLIC_WRITERS] if self.public_writers else []),
            ),
            not_covered=disclose_checksums([read]),
        )

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        return self.examples(paths).build_task(self.clients, self.partition, generator)


def _public_examples(ink: NDArray[Any], targets: NDArray[Any], chosen: NDArray[Any]) -> tuple[Tensor, Tensor]:
    if not chosen.any():
        raise InvalidInput(f"{FILE} has no incomplete writer who could be public.", fix="Leave out public_writers.")
    return image_scaling.pixels(ink[chosen]), image_scaling.labels(targets[chosen])


def read_femnist(read: FileContent) -> list[NDArray[Any]]:
    """The file's arrays, as `ARRAYS` names them. A file of the user's own may be anything: they must fit each other."""
    found = read_npz(read.data, read.name, *ARRAYS)
    pictures, targets, writer, split, writers, complete = found
    count = len(targets)
    fits = (
        pictures.shape == (count, 28, 28)
        and pictures.dtype == "uint8"
        and writer.shape == split.shape == targets.shape == (count,)
        and writers.shape == complete.shape
        and all(each.dtype.kind in "iu" for each in (targets, writer, split))
        and complete.dtype == bool
        and count > 0
        and 0 <= int(writer.min()) <= int(writer.max()) < len(writers)
    )
    if not fits:
        raise InvalidInput(
            f"The arrays of {FILE} do not fit each other: images is {pictures.dtype} {pictures.shape}, labels "
            f"{targets.shape}, writer {writer.shape}, split {split.shape}, writer_ids {writers.shape} and "
            f"writer_complete {complete.dtype} {complete.shape}.",
            fix="images must be uint8, n by 28 by 28; labels, writer and split n whole numbers; and each writer an "
            "index into writer_ids, beside which writer_complete says true or false.",
        )
    return found
