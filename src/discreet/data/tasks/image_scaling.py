"""What the tasks on pictures share: bytes become numbers by public constants, and the card says which."""

from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from discreet.data.datasets.dataset_files import read_data_files
from discreet.data.datasets.file_formats import read_idx
from discreet.paths import Paths

WHITE = 255  # a byte's largest value
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, channel by channel, as published
WRITERS_ARE_PUBLIC = "Writers and their numbers of examples are public."

Scaling: TypeAlias = Literal["unit", "imagenet"]


def arrays(paths: Paths, dataset: str, *files: str) -> list[NDArray[Any]]:
    """These idx files of the data set."""
    return [read_idx(each.data, each.name) for each in read_data_files(paths, dataset, files)]


def pixels(images: NDArray[np.uint8], scaling: Scaling = "unit") -> Tensor:
    """Numbers in [0, 1]; for "imagenet" then less its means, over its deviations. Grey pictures get one channel."""
    scaled = torch.from_numpy(images.astype(np.float32, order="C")).div_(WHITE)
    if scaled.dim() == 3:
        scaled = scaled.unsqueeze(1)
    if scaling == "imagenet":
        scaled.sub_(torch.tensor(MEAN).view(3, 1, 1)).div_(torch.tensor(DEVIATION).view(3, 1, 1))
    return scaled


def labels(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))


def facts(name: str, scaling: Scaling = "unit", limit: int | None = None) -> tuple[str, ...]:
    """What the card must say: whose data it is, how it was scaled, and how much of it is used."""
    said = (public(name), scaled(scaling))
    return said if limit is None else (*said, f"Only the first {limit:,} training examples are used.")


def public(name: str) -> str:
    return f"{name} is public data, treated as if it were private."


def scaled(scaling: Scaling = "unit") -> str:
    then = "" if scaling == "unit" else ", then standardised by ImageNet's published means and deviations"
    return f"Pixels are divided by {WHITE}, the format's largest value{then}: nothing was fitted on the clients' data."
