"""Examples from image files: pixels are scaled by public constants, and the card names those constants."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.data.datasets.dataset_files import read_data_files
from discreet.data.datasets.file_formats import LabelledImages, read_idx
from discreet.data.tasks.examples import Examples
from discreet.lazy_torch import Tensor, torch
from discreet.paths import Paths
from discreet.words import fill

WHITE = 255  # the largest value of a byte
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # published for ImageNet, one per channel

Scaling: TypeAlias = Literal["unit", "imagenet"]


def image_examples(
    name: str,
    title: str,
    train: LabelledImages,
    test: LabelledImages,
    *,
    classes: int,
    scaling: Scaling = "unit",
    limit: int | None = None,
) -> Examples:
    """Turn the images of a public data set into examples.

    Args:
        name: The name of the task in experiment files and reports.
        title: The name of the data set on the card.
        train: Training images as bytes, with one label each.
        test: Test images as bytes, with one label each.
        classes: Number of classes.
        scaling: "unit" scales pixels to [0, 1]; "imagenet" then standardises each channel.
        limit: Use only this many training images, from the start. None uses all.
    """
    return Examples(
        name=name,
        inputs=scale_pixels(train.images[:limit], scaling),
        targets=as_labels(train.labels[:limit]),
        test_inputs=scale_pixels(test.images, scaling),
        test_targets=as_labels(test.labels),
        kind="classification",
        classes=classes,
        facts=_describe_images(title, scaling, limit),
    )


def read_idx_files(paths: Paths, dataset: str, *files: str) -> list[NDArray[Any]]:
    """Read idx files of a data set, in the order given."""
    return [read_idx(content.data, content.name) for content in read_data_files(paths, dataset, files)]


def read_idx_images(
    paths: Paths, dataset: str, train: tuple[str, str], test: tuple[str, str]
) -> tuple[LabelledImages, LabelledImages]:
    """Read the training and the test images, each from a file of images and a file of labels."""
    images, labels, test_images, test_labels = read_idx_files(paths, dataset, *train, *test)
    return LabelledImages(images, labels), LabelledImages(test_images, test_labels)


def scale_pixels(images: NDArray[np.uint8], scaling: Scaling = "unit") -> Tensor:
    """Scale bytes to [0, 1], and standardise them for "imagenet". Grey images get a channel dimension."""
    pixels = torch.from_numpy(images.astype(np.float32, order="C")).div_(WHITE)
    if pixels.dim() == 3:
        pixels = pixels.unsqueeze(1)
    if scaling == "imagenet":
        pixels.sub_(torch.tensor(MEAN).view(3, 1, 1)).div_(torch.tensor(DEVIATION).view(3, 1, 1))
    return pixels


def as_labels(values: NDArray[Any]) -> Tensor:
    """Convert class labels to int64, which torch's losses expect."""
    return torch.from_numpy(values.astype(np.int64))


def _describe_images(title: str, scaling: Scaling, limit: int | None) -> tuple[str, ...]:
    facts = (describe_public_data(title), describe_scaling(scaling))
    return facts if limit is None else (*facts, fill("data.limit", limit=f"{limit:,}"))


def describe_public_data(title: str) -> str:
    """Say on the card that the data set is public."""
    return fill("data.public", title=title)


def describe_scaling(scaling: Scaling = "unit") -> str:
    """Say on the card how pixels are scaled."""
    return fill("data.pixels" if scaling == "unit" else "data.standardised_pixels", white=WHITE)
